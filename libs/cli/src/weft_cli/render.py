"""Tables and texts for people: rich where a terminal is, plain columns elsewhere."""

import os
import sys
from collections.abc import Sequence

from weft_cli.harmless import harmless


def on_terminal() -> bool:
    """Whether stdout shows colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table; without rows, nothing but the title and a dash."""
    cells = [[_cell(value) for value in row] for row in rows]
    if on_terminal():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        shown = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for each in headings:
            shown.add_column(each, overflow="fold")  # a narrow terminal loses no letter of an id
        for row in cells:
            shown.add_row(*(Text(cell, style=_style(cell)) for cell in row))
        Console().print(shown if cells else f"[bold]{title}[/bold]  -")
        return
    if title:
        print(title)
    if not cells:
        print("  -")
        return
    lines = [[each.upper() for each in headings], *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def size(count: int | None) -> str:
    """Bytes for people, in binary units; unknown is `?`, which is not zero."""
    if count is None:
        return "?"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024 or unit == "TiB":
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("TiB is the last")


def age(seconds: float) -> str:
    """A span of time for people, by its largest unit or two."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    if days:
        return f"{days}d {hours}h"
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {left}s" if minutes else f"{left}s"


def cut(text: str, length: int = 100) -> str:
    """A text's beginning; all of it stands in the JSON form."""
    return text if len(text) <= length else text[: length - 3] + "..."


def _cell(value: object) -> str:
    """One line: what engines say has line breaks, and perhaps worse."""
    return "-" if value is None or value == "" else harmless(" ".join(str(value).split("\n")))


_GOOD = {"ready", "healthy"}
_BAD = {"failed", "offline", "lost", "unservable", "unplaceable", "restarting", "held", "not running"}


def _style(cell: str) -> str:
    return "green" if cell in _GOOD else "red" if cell in _BAD else ""
