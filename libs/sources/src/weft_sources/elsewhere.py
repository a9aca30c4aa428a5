"""Where one file of a source may be asked for, by the key that a card names it with."""

from typing import Final

from weft_contracts.facts.source import HfSource, S3Source, SourceFile
from weft_contracts.source_keys import NoSource, source_of
from weft_files.address import Address

from weft_sources.listing import addresses
from weft_sources.settings import SourceSettings

_DENIED: Final = ("answers 401", "answers 403")


def addresses_elsewhere(key: str, size: int, settings: SourceSettings) -> tuple[Address, ...]:
    """The addresses of a hub's or a bucket's file; none for what is no such key, or a hub that isn't to be asked.

    Raises SourceRefused.
    """
    try:
        source = source_of(key)
    except NoSource:
        return ()
    if isinstance(source, HfSource):
        name = source.file
    elif isinstance(source, S3Source):
        name = source.key.rpartition("/")[2]
    else:
        return ()
    if not name:
        return ()
    return addresses(source, SourceFile(name=name, size=size), settings)


def is_denied(reason: str) -> bool:
    """Whether a source did not give a file for want of a right to it."""
    return reason.startswith(_DENIED)
