"""The card of a run: what its worker published, and where else the same contents can be had.

A worker says names, sizes and checksums. Where else a file lies follows from the spec, which an admin gave: so no
worker leads a reader to an address or a path of its own choice.
"""

import re
from collections.abc import Iterator
from typing import Final

from weft_contracts.card import BLAKE3, CARD_FILE_NAME, MOST_EXTRA, Card, CardFile, card_of
from weft_contracts.facts.source import HfSource, PathSource, S3Source
from weft_contracts.facts.values import MetadataFile, ModelSpec
from weft_contracts.source_keys import source_key

_NAME: Final = re.compile(CARD_FILE_NAME)
_CHECKSUM: Final = re.compile(BLAKE3)
_MOST_NAME: Final = 255
_MOST_ELSEWHERE: Final = 2048


def published_card(spec: ModelSpec, metadata: tuple[MetadataFile, ...], self_hosted: bool | None) -> Card | None:
    """What a run published, as a card; None where that is nothing. What can't be a card's file is passed over.

    `self_hosted`: see `run.Ready`. The files of a worker that is older than cards have no sizes here, so that its
    card is read in the old way.
    """
    files = tuple(_files(spec, metadata, sized=self_hosted is not None))
    return card_of(files) if files else None


def elsewhere_of(spec: ModelSpec, file: MetadataFile) -> tuple[str, ...]:
    """Where a file lies at its model's source: a path, or a source's key for this file alone; empty: in no source.

    A hub's and a bucket's files are those that the spec names. Those beside a path may lie there: whoever looks holds
    them against the checksum.
    """
    source = spec.source
    if isinstance(source, PathSource):
        folder = source.path.rstrip("/")
        if spec.weights.format == "gguf":
            folder = folder.rpartition("/")[0]
        found = f"{folder}/{file.name}"
    elif not any(each.name == file.name and each.size == file.size for each in spec.files):
        return ()
    elif isinstance(source, HfSource):
        found = source_key(source.model_copy(update={"file": file.name}))
    elif isinstance(source, S3Source):
        folder, slash, _ = source.key.rpartition("/")
        found = source_key(source.model_copy(update={"key": f"{folder}{slash}{file.name}"}))
    else:
        return ()
    return (found,) if len(found) <= _MOST_ELSEWHERE else ()


def _files(spec: ModelSpec, metadata: tuple[MetadataFile, ...], *, sized: bool) -> Iterator[CardFile]:
    names: set[str] = set()
    for file in metadata:
        checksum = f"blake3:{file.blake3}"
        if len(file.name) > _MOST_NAME or _NAME.fullmatch(file.name) is None or _CHECKSUM.fullmatch(checksum) is None:
            continue
        if file.name not in names and len(names) < MOST_EXTRA:
            names.add(file.name)
            size = file.size if sized else None
            yield CardFile(name=file.name, checksum=checksum, size=size, elsewhere=elsewhere_of(spec, file))
