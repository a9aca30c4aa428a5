"""One screen of `weft top`, as large as there is room: totals, what is wrong, and of each sort the busiest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text
from weft_client.units import size

from weft_cli.render import printable
from weft_cli.top.looks import Look

if TYPE_CHECKING:
    from weft_api import ModelLoad, NodeLoad, ReplicaLoad

GOOD = frozenset(("ready", "healthy"))
BAD = frozenset(("failed", "offline", "unhealthy", "cut_off", "lost", "unservable", "unplaceable"))
PROBLEMS = 3
_NOT_KNOWN = "-"
_AROUND = 2
"""Lines of each list beside its rows: an empty one and the headings."""
Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _List:
    headings: Row
    """The first is that of names, which give way where it is narrow; the others' cells stay whole."""
    rows: Sequence[Row]
    words: frozenset[int]
    """Columns of words; the others are figures, to the right."""


def screen(title: str, look: Look | None, absent: str | None, width: int, height: int | None) -> Group:
    """What is to be seen. `absent`: why the gateway doesn't answer now; `height` None: as much as there is to show."""
    parts: list[Table | Text] = [_line(title, "bold", width)]
    if absent is not None:
        parts.append(_line(f"no answer: {absent}; it is asked again", "red", width))
    if look is None:
        return Group(*parts)
    load = look.load
    parts += [_line(text, "", width) for text in _totals(look)]
    parts += [_line(f"! {problem}", "red", width) for problem in load["problems"][:PROBLEMS]]
    lists = (_models(load["models"], look), _nodes(load["nodes"]), _replicas(load["replicas"]))
    room = None if height is None else height - len(parts) - _AROUND * len(lists) - 1
    for each, rows in zip(lists, shares([len(each.rows) for each in lists], room), strict=True):
        parts += [Text(""), _table(each, rows, width)]
    return Group(*parts)


def shares(wanted: Sequence[int], room: int | None) -> list[int]:
    """How many rows each list gets: alike, and what one doesn't need the others get. At least one each."""
    if room is None:
        return list(wanted)
    given = [min(1, each) for each in wanted]
    while sum(given) < room and any(has < wants for has, wants in zip(given, wanted, strict=True)):
        least = min((i for i, wants in enumerate(wanted) if given[i] < wants), key=lambda i: given[i])
        given[least] += 1
    return given


def _totals(look: Look) -> list[str]:
    load, of = look.load, look.load["totals"]
    speed = _NOT_KNOWN if look.speed is None else f"{look.speed:,.0f}"
    lines = [
        "   ".join((_counted("nodes", of["nodes"]), _counted("models", of["models"]))),
        _counted("replicas", of["replicas"]) + f"   {size(of['claimed'])} of {size(of['memory'])} claimed",
        f"requests {of['running']:,}, waiting {of['waiting']:,}   tokens/s {speed}   log {load['position']:,}",
    ]
    if load["brake"] is not None:
        lines.append("the brake is set: nothing is replaced")
    return lines


def _counted(what: str, states: dict[str, int]) -> str:
    """`nodes 40: 38 healthy, 2 offline`; the word that says that all is well alone where it is all."""
    most = sorted(states.items(), key=lambda each: (-each[1], each[0]))
    said = ", ".join(f"{count:,} {state}" for state, count in most if count)
    return f"{what} {sum(states.values()):,}" + (f" ({said})" if said else "")


def _models(models: "Sequence[ModelLoad]", look: Look) -> _List:
    rows: list[Row] = []
    for each in models:
        speed = look.speeds.get(each["name"])
        told = _NOT_KNOWN if speed is None else f"{speed:,.0f}"
        ready = f"{each['ready']}/{each['wanted']}"
        rows.append((each["name"], each["state"], ready, f"{each['running']:,}", f"{each['waiting']:,}", told))
    return _List(("model", "state", "ready", "requests", "waiting", "tokens/s"), rows, frozenset((0, 1)))


def _nodes(nodes: "Sequence[NodeLoad]") -> _List:
    rows = [
        (
            each["name"],
            each["state"],
            f"{each['replicas']:,}",
            f"{each['running']:,}",
            f"{size(each['claimed'])} of {size(each['memory'])}",
            size(each["pressure"]) if each["pressure"] else _NOT_KNOWN,
        )
        for each in nodes
    ]
    return _List(("node", "state", "replicas", "requests", "claimed", "by others"), rows, frozenset((0, 1)))


def _replicas(replicas: "Sequence[ReplicaLoad]") -> _List:
    rows = [
        (
            each["id"],
            "shunned" if each["shunned"] else each["state"],
            each["model"],
            each["node"] or _NOT_KNOWN,
            _NOT_KNOWN if each["running"] is None else f"{each['running']:,}",
        )
        for each in replicas
    ]
    return _List(("replica", "state", "of", "on", "requests"), rows, frozenset((0, 1, 2, 3)))


def _table(each: _List, rows: int, width: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", width=width, padding=(0, 2, 0, 0))
    for place, heading in enumerate(each.headings):
        gives = place == 0 or (place in each.words and place > 1)
        table.add_column(
            heading,
            justify="left" if place in each.words else "right",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if gives else None,
        )
    for row in each.rows[:rows]:
        table.add_row(*(Text(printable(cell), style=_style(cell)) for cell in row))
    return table


def _style(cell: str) -> str:
    return "green" if cell in GOOD else "red" if cell in BAD else ""


def _line(text: str, style: str, width: int) -> Text:
    line = Text(printable(text), style=style, no_wrap=True)
    line.truncate(width, overflow="ellipsis")
    return line
