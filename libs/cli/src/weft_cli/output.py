"""Where a command's output goes: what may be closed, cut off early, full, or of another alphabet."""

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper

from weft_client.failure import Exit


class ReaderGone(Exception):
    """Whoever read the output, such as `head`, has seen enough."""


def prepare() -> None:
    """Let nothing fail for a closed descriptor, or for a letter that the other end can't show."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def run_to_end(command: Callable[[], int]) -> int:
    """Run a command until all that it says is out; its exit status. A full disk is a failure, a reader gone is none."""
    status = int(Exit.OK)
    try:
        status = command()
        sys.stdout.flush()
    except (ReaderGone, BrokenPipeError):
        _say_no_more()
    except OSError as e:
        _say_no_more()
        print(f"weft: {e.filename or 'the output'}: {e.strerror or e}", file=sys.stderr)
        status = int(Exit.FAILED)
    return status


def _say_no_more() -> None:
    """What is left in the buffer would fail again at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
