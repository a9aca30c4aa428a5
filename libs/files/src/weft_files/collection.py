"""What goes when a store holds more than it should: the least recently used, and never what is kept."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from weft_files.blobs import Blob
from weft_files.layout import Layout


@dataclass(frozen=True, slots=True)
class Leaving:
    layouts: tuple[str, ...]
    blobs: tuple[str, ...]


def choose(
    layouts: Sequence[Layout], blobs: Sequence[tuple[Blob, float]], most: int, keep: Collection[str], before: float
) -> Leaving:
    """Pure. Blobs go with the last layout that names them, or by themselves where none does; a blob that was used
    since `before` may be about to be laid out, and stays."""
    sizes = {blob.blake3: blob.size for blob, _ in blobs}
    fresh = {blob.blake3 for blob, used in blobs if used >= before}
    users: dict[str, int] = {}
    for layout in layouts:
        for digits in {digits for digits, _ in layout.files.values()}:
            users[digits] = users.get(digits, 0) + 1
    total = sum(sizes.values())
    going_layouts: list[str] = []
    going_blobs: list[str] = []
    units: list[tuple[float, Layout | str]] = [
        (layout.used, layout) for layout in layouts if layout.name not in keep and not layout.pinned
    ]
    units += [(used, blob.blake3) for blob, used in blobs if blob.blake3 not in users and used < before]
    for _, unit in sorted(units, key=lambda each: each[0]):
        if total <= most:
            break
        if isinstance(unit, Layout):
            going_layouts.append(unit.name)
            freed = {digits for digits, _ in unit.files.values()}
            for digits in freed:
                users[digits] -= 1
            gone = sorted(digits for digits in freed if users[digits] == 0 and digits in sizes and digits not in fresh)
        else:
            gone = [unit]
        going_blobs += gone
        total -= sum(sizes[digits] for digits in gone)
    return Leaving(tuple(going_layouts), tuple(going_blobs))
