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


def promised(node: NodeView, files: str) -> int:
    """Bytes of the node's disk that others than these files will take which it is to fetch ahead of any replica's need.

    What it failed to fetch is not counted; of what is under way all is, though some of it lies there.
    """
    wishes = node.file_wishes
    others = wishes.wanted.keys() - node.fetched.keys() - wishes.faults.keys() - {files}
    size = sum(wishes.wanted[each].bytes for each in others)
    return size + size // _SPARE


def disk(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that would have to fetch the files and has too little room for them; what is not known passes."""
    if not demand.files or demand.files in node.fetched or node.hardware is None:
        return None
    free, needed = node.hardware.disk_free, room_for(demand.file_bytes)
    if free is None or free - promised(node, demand.files) >= needed:
        return None
    return (
        f"has too little disk for the model's files of {gib(demand.file_bytes)}:"
        f" {gib(needed)} must be free, 5 % to spare and 1 GiB that stays so among them"
    )
