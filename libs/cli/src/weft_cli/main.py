"""Runs one command line to its exit status."""

import os
import sys

from typer import TyperException
from weft_client import command_names
from weft_client.failure import Exit, Failure

from weft_cli import outcome, output
from weft_cli.app import app


def main() -> int:
    """Run the command line of this process; the exit status."""
    output.prepare()
    if "_WEFT_COMPLETE" in os.environ:  # a shell asks what can stand next
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # makes typer's shells known
    return output.run_to_end(_run)


def _run() -> int:
    as_json = outcome.wants_json(sys.argv[1:])
    try:
        # Where JSON is asked for, typer's own errors are said by us.
        ended: object = app(prog_name=command_names.name(), standalone_mode=not as_json)
    except Failure as e:
        outcome.failed(str(e), e.exit, as_json=as_json)
        return int(e.exit)
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else int(e.code is not None)
    except TyperException as e:
        outcome.failed(e.format_message(), e.exit_code, as_json=as_json)
        return e.exit_code
    return ended if isinstance(ended, int) else int(Exit.OK)
