"""The person's side of a conversation: lines typed at a terminal, with editing and history, and answers shown."""

import contextlib
import os
import sys

from weft_cli.chat.conversation import COMMANDS
from weft_cli.render import on_terminal, printable


class Terminal:
    """Reads from stdin, writes to stdout. Ctrl-C is a KeyboardInterrupt in either."""

    def __init__(self) -> None:
        self._styled = on_terminal()
        with contextlib.suppress(ImportError):  # absent in some builds of Python; then lines are typed without it
            import readline

            readline.set_completer(_complete)
            readline.set_completer_delims(" ")
            readline.parse_and_bind("tab: complete")

    def ask(self, prompt: str) -> str | None:
        """The next line; None at the end of the input (Ctrl-D)."""
        try:
            return input(prompt)
        except EOFError:
            print()
            return None

    def show(self, piece: str) -> None:
        """A piece of an answer."""
        print(printable(piece), end="", flush=True)

    def note(self, text: str) -> None:
        """A word of the command's own."""
        print(f"\033[2m{text}\033[0m" if self._styled else text, flush=True)

    def complain(self, text: str) -> None:
        """What went wrong."""
        print(f"\033[31m{text}\033[0m" if self._styled else text, flush=True)


def person_watches_stderr() -> bool:
    """Whether a hint on stderr reaches somebody."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _complete(text: str, state: int) -> str | None:
    found = [f"/{word}" for word in COMMANDS if text.startswith("/") and f"/{word}".startswith(text)]
    return found[state] if state < len(found) else None
