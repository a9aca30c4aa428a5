"""Runs one command line to its exit status."""

import os
import sys

from weft_cli import outlet
from weft_cli.app import app
from weft_cli.failure import Exit, Failure


def main() -> int:
    """Run the command line of this process; the exit status."""
    outlet.prepare()
    if "_WEFT_COMPLETE" in os.environ:  # a shell asks what can stand next
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # makes typer's shells known
    return outlet.guarded(_run)


def _run() -> int:
    try:
        app(prog_name="weft")
    except Failure as e:
        print(f"weft: {e}", file=sys.stderr)
        return int(e.exit)
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else int(e.code is not None)
    return int(Exit.OK)
