"""Tables and texts for people: as wide as a terminal where one is, plain columns elsewhere."""

import os
import sys
from collections.abc import Sequence

_KEPT = "\n\t"
_NOTHING = "-"
_GAP = 2
"""Letters between two columns."""
_FOLDED = 24
"""A word of a text, such as a path, is folded only where it is longer."""


def on_terminal() -> bool:
    """Whether stdout shows colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """What others wrote, without control characters: what a model or an engine says must not command a terminal."""
    return "".join(c for c in text if c in _KEPT or (c >= " " and not "\x7f" <= c <= "\x9f"))


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table; without rows, nothing but the title and a dash."""
    cells = [[_cell(value) for value in row] for row in rows]
    if title:
        print(title)
    if not cells:
        print("  -")
    elif sys.stdout.isatty():
        _on_a_screen(headings, cells)
    else:
        lines = [[each.upper() for each in headings], *cells]
        widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
        for line in lines:
            print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _on_a_screen(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """As wide as the terminal: texts of several words fold, ids and other words stay whole.

    Where that isn't enough, columns that say nothing go; then each row is a list of its own.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(color_system="auto" if on_terminal() else None, highlight=False)
    columns = list(range(len(headings)))
    if _least(headings, cells, columns) > console.width:
        columns = [i for i in columns if any(row[i] != _NOTHING for row in cells)]
    if _least(headings, cells, columns) > console.width:
        _as_lists(headings, cells, columns)
        return
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for i in columns:
        shown.add_column(headings[i], overflow="fold", min_width=_narrowest([headings[i], *(row[i] for row in cells)]))
    for row in cells:
        shown.add_row(*(Text(row[i], style=_style(row[i])) for i in columns))
    console.print(shown)


def _as_lists(headings: Sequence[str], cells: Sequence[Sequence[str]], columns: Sequence[int]) -> None:
    """Each row as lines of heading and value, so that whatever is long stands alone."""
    width = max(len(headings[i]) for i in columns)
    for number, row in enumerate(cells):
        if number:
            print()
        for i in columns:
            if row[i] != _NOTHING:
                print(f"{headings[i]:<{width}}  {row[i]}")


def _least(headings: Sequence[str], cells: Sequence[Sequence[str]], columns: Sequence[int]) -> int:
    """Letters that a line of these columns takes at least."""
    widths = [_narrowest([headings[i], *(row[i] for row in cells)]) for i in columns]
    return sum(widths) + _GAP * max(0, len(widths) - 1)


def _narrowest(texts: Sequence[str]) -> int:
    """How narrow a column may become: a lone word stays whole however long, one among others folds when it is long."""
    lone = max((len(text) for text in texts if " " not in text), default=0)
    among = max((len(word) for text in texts if " " in text for word in text.split()), default=0)
    return max(lone, min(among, _FOLDED))


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
    return _NOTHING if value is None or value == "" else printable(" ".join(str(value).split("\n")))


_GOOD = {"ready", "healthy"}
_BAD = {"failed", "offline", "cut_off", "lost", "unservable", "unplaceable", "restarting", "held", "not running"}


def _style(cell: str) -> str:
    return "green" if cell in _GOOD else "red" if cell in _BAD else ""
