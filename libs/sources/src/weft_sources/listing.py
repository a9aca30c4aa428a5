"""What a source has of a model, and where each of its files may be asked for. All of it blocks: call it in a thread."""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from weft_contracts.engines import FileFormat
from weft_contracts.facts.source import HfSource, HttpsSource, RemoteSource, S3Source, SourceFile
from weft_contracts.shown import shown
from weft_contracts.source_keys import told_source
from weft_files.address import Address

from weft_sources.bucket import bucket_address, find_in_bucket
from weft_sources.choice import choose
from weft_sources.found import Found
from weft_sources.hub import find_in_hub, hub_address
from weft_sources.hub_folder import file_in_folder, find_in_folder, not_there
from weft_sources.ranged import PIECE, RangedFile
from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.safetensors_choice import MOST_INDEX
from weft_sources.settings import SourceSettings
from weft_sources.web import find_on_web, web_address


@dataclass(frozen=True, slots=True)
class Listing:
    """What an engine takes of a source."""

    source: RemoteSource
    """One version of it: a hub's repository with its commit."""
    files: tuple[SourceFile, ...]
    """The weights, first the file that the engine is told, and then the metadata, the configuration first."""
    licence: str
    """As the source says it; empty: it doesn't."""
    gated: bool
    """Whether it has terms, which this node's account accepted."""


def list_source(source: RemoteSource, formats: Sequence[FileFormat], settings: SourceSettings) -> Listing:
    """What an engine that loads these formats takes of a source, before any of it moves.

    Raises SourceRefused with one sentence for people: what is wrong, and what would help; SourceAway where the same
    question may be answered later.
    """
    found = _find(source, settings)
    pinned = found.source
    wanted = pinned.file if isinstance(pinned, HfSource) else ""

    def index(file: SourceFile) -> bytes:
        return read_small(pinned, file, settings, MOST_INDEX)

    files = choose(found.files, formats, wanted, told_source(source), index)
    return Listing(pinned, files, found.licence, found.gated)


def addresses(source: RemoteSource, file: SourceFile, settings: SourceSettings) -> tuple[Address, ...]:
    """Where a file of a listing may be asked for now, best first; none where a hub's are read from a folder alone.

    A bucket's are signed for twelve hours. Raises SourceRefused.
    """
    match source:
        case HfSource():
            return () if settings.offline else (hub_address(source, file, settings),)
        case HttpsSource():
            return (web_address(source, file.name, settings),)
        case S3Source():
            return (bucket_address(source, file.name, settings),)


def local_file(source: RemoteSource, file: SourceFile, settings: SourceSettings) -> Path | None:
    """Where huggingface_hub laid this file on this machine before, if it did; its content isn't checked."""
    if isinstance(source, HfSource) and settings.hub_folder is not None:
        return file_in_folder(source, file, settings.hub_folder)
    return None


def open_ranged(source: RemoteSource, file: SourceFile, settings: SourceSettings, piece: int = PIECE) -> BinaryIO:
    """A file of a listing, seekable and read-only, of which only what is read is fetched, in pieces of so many bytes.

    At most 256 MiB come in all. Opening and reads raise SourceRefused.
    """
    local = local_file(source, file, settings)
    if local is not None:
        return local.open("rb")
    if isinstance(source, HfSource) and settings.offline:
        raise not_there(source, settings.hub_folder)
    raw = RangedFile(lambda: addresses(source, file, settings)[0], file, settings, piece)
    return cast(BinaryIO, io.BufferedReader(raw, 1 << 16))


def read_small(source: RemoteSource, file: SourceFile, settings: SourceSettings, most: int) -> bytes:
    """A whole file of at most `most` bytes, checked against its SHA-256 or blob id where the listing has one.

    Raises SourceRefused.
    """
    if file.size > most:
        raise SourceRefused(f"{told_source(source)}: {shown(file.name)} has {file.size} bytes, and at most {most} do")
    with open_ranged(source, file, settings) as opened:
        body = opened.read(file.size)
    kind, _, told = file.checksum.partition(":")
    match kind:
        case "sha256":
            came = hashlib.sha256(body).hexdigest()
        case "git":
            came = hashlib.sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
        case _:
            return body
    if came != told:
        raise SourceRefused(f"{told_source(source)}: {shown(file.name)} is not what its {kind} says: deploy it anew")
    return body


def _find(source: RemoteSource, settings: SourceSettings) -> Found:
    match source:
        case HfSource():
            return _find_hf(source, settings)
        case HttpsSource():
            return find_on_web(source, settings)
        case S3Source():
            return find_in_bucket(source, settings)


def _find_hf(source: HfSource, settings: SourceSettings) -> Found:
    """The hub's word, and the folder's where the hub isn't asked or isn't there."""
    if not settings.offline:
        try:
            return find_in_hub(source, settings)
        except SourceAway:
            there = _in_folder(source, settings)
            if there is None:
                raise
            return there
    there = _in_folder(source, settings)
    if there is None:
        raise not_there(source, settings.hub_folder)
    return there


def _in_folder(source: HfSource, settings: SourceSettings) -> Found | None:
    return None if settings.hub_folder is None else find_in_folder(source, settings.hub_folder)
