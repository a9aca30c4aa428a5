"""The small files that belong to a model: found beside it, hashed, and offered by name."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import blake3
from weft_contracts.facts.values import MetadataFile

NAMES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "config.json",
    "generation_config.json",
    "chat_template.jinja",
)
TEMPLATE = "chat_template.jinja"
MAX_BYTES = 64 << 20
"""A larger file of such a name is no metadata."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One metadata file: what the log says of it, and where its bytes are."""

    file: MetadataFile
    content: Path | bytes
    """A path, or the bytes themselves where they stand inside the model file."""


def offers(folders: Iterable[Path], template: str = "") -> tuple[Offer, ...]:
    """The metadata files in some folders, the first folder winning; reads and hashes them, so it may take long.

    Args:
        template: the chat template in the model file's header; offered if no folder has one.
    """
    found: dict[str, Offer] = {}
    for folder in folders:
        for name in NAMES:
            if name not in found and (offer := _offer(folder / name)) is not None:
                found[name] = offer
    if template and TEMPLATE not in found:
        text = template.encode()
        found[TEMPLATE] = Offer(MetadataFile(name=TEMPLATE, size=len(text), blake3=_hash(text)), text)
    return tuple(found[name] for name in NAMES if name in found)


def _offer(path: Path) -> Offer | None:
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    return Offer(MetadataFile(name=path.name, size=len(content), blake3=_hash(content)), path)


def _hash(content: bytes) -> str:
    return blake3.blake3(content).hexdigest()
