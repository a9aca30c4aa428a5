"""The small files that belong to a model: found beside it, hashed, and offered by name."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import blake3
from weft_contracts.card import SLOT_OF_NAME
from weft_contracts.facts.values import MetadataFile
from weft_runtime.logs import get_logger

EXTRA: Final = ("special_tokens_map.json", "added_tokens.json")
"""What belongs to a tokenizer, and to no slot."""
NAMES: Final = (*sorted(SLOT_OF_NAME), *EXTRA)
TEMPLATE: Final = "chat_template.jinja"
MOST_BYTES: Final = 1 << 30
"""A larger file of such a name is no metadata."""
_BUFFER: Final = 1 << 20
_log: Any = get_logger("weft.files")


@dataclass(frozen=True, slots=True)
class Offer:
    """One metadata file: what the log says of it, and where its bytes are."""

    file: MetadataFile
    content: Path | bytes
    """A path, or the bytes themselves where they stand inside the model file."""


def offers(folders: Iterable[Path], template: str = "", *, shipped: bool = False) -> tuple[Offer, ...]:
    """The metadata files in some folders, the first folder winning; reads and hashes them, so it may take long.

    Args:
        template: the chat template in the model file's header; offered if no folder has one.
        shipped: they came with Weft, and a package's files may be links. Of other folders, which may be strangers',
            nothing is offered that a link leads to elsewhere.
    """
    found: dict[str, Offer] = {}
    for folder in folders:
        for name in NAMES:
            if name not in found and (offer := _offer(folder / name, shipped)) is not None:
                found[name] = offer
    if template and TEMPLATE not in found:
        text = template.encode("utf-8", "surrogatepass")
        digits = blake3.blake3(text).hexdigest()
        found[TEMPLATE] = Offer(MetadataFile(name=TEMPLATE, size=len(text), blake3=digits), text)
    return tuple(found[name] for name in NAMES if name in found)


def hashed(path: Path) -> str:
    """The blake3 of a file's content. Raises OSError."""
    digest, buffer = blake3.blake3(), memoryview(bytearray(_BUFFER))
    with path.open("rb", buffering=0) as file:
        while came := file.readinto(buffer):
            digest.update(buffer[:came])
    return digest.hexdigest()


def _offer(path: Path, shipped: bool) -> Offer | None:
    try:
        if not shipped and path.is_symlink() and not _leads_inside(path):
            _log.warning("a model's file is a link out of its folder, and is not offered", path=str(path))
            return None
        if not path.is_file() or (size := path.stat().st_size) > MOST_BYTES:
            return None
        return Offer(MetadataFile(name=path.name, size=size, blake3=hashed(path)), path)
    except OSError:
        return None


def _leads_inside(link: Path) -> bool:
    """Whether it leads to where its model lies: its folder, or for a snapshot of a hub's cache that one's blobs."""
    folder = Path(os.path.realpath(link.parent))
    places = (folder, *((folder.parents[1] / "blobs",) if folder.parent.name == "snapshots" else ()))
    true = Path(os.path.realpath(link))
    return any(true.is_relative_to(place) for place in places)
