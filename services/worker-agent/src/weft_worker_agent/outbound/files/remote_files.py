"""Looks at a model that lies elsewhere, before any of it is fetched: which files it is, and what their headers say."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import blake3
from weft_contracts.engines import BUILTIN, FileFormat, Profiles
from weft_contracts.facts.source import RemoteSource, SourceFile
from weft_contracts.facts.values import Weights
from weft_contracts.source_faults import fault_of_files
from weft_contracts.source_keys import told_source
from weft_files.faults import Fault, NotFetched
from weft_gguf.header import GgufError, NotGguf, Part, read_part_from
from weft_gguf.split import read_named_model
from weft_gguf.weights import weights_of_header
from weft_sources.config_weights import MOST_CONFIG, config_body, weights_of_config
from weft_sources.listing import list_source, open_ranged, read_small
from weft_sources.metadata_names import CONFIG
from weft_sources.refused import SourceRefused
from weft_sources.safetensors_header import added_up, tensor_bytes
from weft_sources.settings import SourceSettings

from weft_worker_agent.outbound.files.found import NotFound

HEADER_PIECE: Final = 1 << 16
"""Bytes that are asked for of a safetensors file first, and of which further ones are multiples: most headers are
shorter."""
HEADERS_AT_ONCE: Final = 8
MOST_HEADERS: Final = 128 << 20
"""Bytes of all headers of one model: those of 160 files with 90,000 tensors take 10 MB."""
LEAST_HEADER: Final = 1 << 20
"""Bytes that the header of one of many files may have in any case."""


@dataclass(frozen=True, slots=True)
class FoundElsewhere:
    """A model of a source. `size`: bytes of all of its files."""

    pinned: RemoteSource
    """The source with the commit that its revision was at."""
    files: tuple[SourceFile, ...]
    size: int
    weights: Weights
    licence: str
    gated: bool
    """Whether it has terms, which this node's account accepted."""


def look_elsewhere(
    source: RemoteSource,
    engine: str,
    settings: SourceSettings,
    engines: Profiles = BUILTIN,
    formats: Sequence[FileFormat] = (),
    *,
    within_s: float,
) -> FoundElsewhere:
    """List a source for an engine and read the headers of what it would load, by ranges.

    Blocks for its requests, each bounded by the settings, and begins none after `within_s` seconds: call it in a
    thread. `formats`: what an engine loads that this node doesn't know yet. Raises NotFound.
    """
    until = time.monotonic() + within_s
    profile = engines.get(engine)
    taken = profile.formats if profile is not None else formats
    where = told_source(source)
    if profile is None and not formats:
        raise NotFound(f"this node knows no engine {engine}")
    if not taken:
        raise NotFound(f"{engine} takes no files, and {where} is a model's files: name a simulated source")
    try:
        listing = list_source(source, taken, settings)
        if (fault := fault_of_files(listing.files)) is not None:
            raise NotFound(f"{where}: {fault}")
        files = {file.name: file for file in listing.files}
        first = listing.files[0]
        if first.name.lower().endswith(".gguf"):
            weights = _gguf(listing.source, first, files, settings, until)
        else:
            weights = _safetensors(listing.source, files, settings, where, until)
    except SourceRefused as refused:
        raise NotFound(str(refused)) from None
    except GgufError as error:
        raise NotFound(f"{where}: {error}") from None
    except (Fault, NotFetched, OSError) as error:
        raise NotFound(f"{where} could not be read: {error}") from None
    own = weights.model_copy(update={"fingerprint": fingerprint_elsewhere(listing.files)})
    size = sum(file.size for file in listing.files)
    return FoundElsewhere(listing.source, listing.files, size, own, listing.licence, listing.gated)


def fingerprint_elsewhere(files: Iterable[SourceFile]) -> str:
    """16 hexadecimal digits over names, sizes and checksums, whatever their order."""
    digest = blake3.blake3()
    for file in sorted(files, key=lambda each: each.name):
        digest.update(f"{file.name}\n{file.size}\n{file.checksum}\n".encode())
    return digest.hexdigest()[:16]


def _gguf(
    source: RemoteSource, first: SourceFile, files: dict[str, SourceFile], settings: SourceSettings, until: float
) -> Weights:
    def read(name: str) -> Part | None:
        file = files.get(name)
        if file is None:
            return None
        if time.monotonic() > until:
            raise NotFound(f"{told_source(source)}: its headers could not be read in time")
        with open_ranged(source, file, settings) as content:
            return read_part_from(content, name, file.size)

    header, names = read_named_model(first.name, read)
    if header.kind == "adapter":
        raise NotGguf(f"{first.name} is an adapter and no model")
    assert set(names) <= files.keys()
    return weights_of_header(header)


def _safetensors(
    source: RemoteSource, files: dict[str, SourceFile], settings: SourceSettings, where: str, until: float
) -> Weights:
    config = files.get(CONFIG)
    if config is None:
        raise NotFound(f"{where} holds safetensors files and no {CONFIG}")
    named = f"{CONFIG} of {where}"
    body = config_body(read_small(source, config, settings, MOST_CONFIG), named)
    parts = [file for name, file in files.items() if name.endswith(".safetensors")]
    types = _tensor_bytes(source, parts, settings, until)
    return weights_of_config(body, sum(part.size for part in parts), named, types)


def _tensor_bytes(
    source: RemoteSource, parts: Sequence[SourceFile], settings: SourceSettings, until: float
) -> dict[str, int] | str:
    """Bytes of the tensors by their type, or why a part is no safetensors file. A header's length is believed only
    where its share of what is read of a model allows it. Raises NotFound, and what asking raises."""

    def read(part: SourceFile) -> dict[str, int]:
        if time.monotonic() > until:
            raise NotFound(f"{told_source(source)}: its headers could not be read in time")
        with open_ranged(source, part, settings, HEADER_PIECE) as content:
            return tensor_bytes(content, part.name, part.size, max(LEAST_HEADER, MOST_HEADERS // len(parts)))

    with ThreadPoolExecutor(HEADERS_AT_ONCE, "weft-headers") as readers:
        try:
            return added_up(readers.map(read, parts))
        finally:
            readers.shutdown(wait=True, cancel_futures=True)
