"""Room on the disk for the files that a node would have to fetch."""

from typing import Final

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.fit.option import gib

STAYS_FREE: Final = 1 << 30
"""Bytes that fetching leaves free."""
_SPARE: Final = 20
"""One part in so many more than the files' own bytes: what a file system takes beside them."""


def room_for(file_bytes: int) -> int:
    """Bytes that must be free before files of so many bytes are fetched."""
    return file_bytes + file_bytes // _SPARE + STAYS_FREE


def promised(node: NodeView, assigned: NodeAssignments, files: str) -> int:
    """Bytes of the node's disk that others than these files will take: those of replicas that are to run there, planned
    ones too, and those that it is to fetch ahead of any replica's need.

    What it failed to fetch ahead is not counted. What is under way is counted whole, since no fact tells how much of it
    lies there: where the node has told of its disk meanwhile, that part is missing from what is free, too.
    """
    wishes = node.file_wishes
    coming = dict(assigned.files)
    coming |= {each: wanted.bytes for each, wanted in wishes.wanted.items() if each not in wishes.faults}
    size = sum(size for each, size in coming.items() if each != files and each not in node.fetched)
    return size + size // _SPARE


def room_left(node: NodeView, assigned: NodeAssignments, files: str) -> int | None:
    """Bytes of the node's disk that are free and not promised to others than these files; None: not known.

    Below 0 where more is promised than is free."""
    free = node.hardware.disk_free if node.hardware is not None else None
    return None if free is None else free - promised(node, assigned, files)


def told_room(node: NodeView, assigned: NodeAssignments, files: str) -> str:
    """What the node's disk has for these files, in words; empty: not known."""
    free = node.hardware.disk_free if node.hardware is not None else None
    if free is None:
        return ""
    others = promised(node, assigned, files)
    if not others:
        return gib(free)
    return f"{gib(free)}, {gib(others)} of it for files that it is to fetch (counted whole until they are there)"


def told_disk(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str:
    """What the node's disk has, in words; empty: not known."""
    has = told_room(node, assigned, demand.files)
    return f"it has {has}" if has else ""


def disk(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that would have to fetch the files and has too little room for them; what is not known passes."""
    if not demand.files or demand.files in node.fetched:
        return None
    left, needed = room_left(node, assigned, demand.files), room_for(demand.file_bytes)
    if left is None or left >= needed:
        return None
    return (
        f"has too little disk for the model's files of {gib(demand.file_bytes)}:"
        f" {gib(needed)} must be free, 5 % to spare and 1 GiB that stays so among them"
    )
