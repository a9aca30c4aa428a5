"""Looks at a model's files on this node: are they there, can the engine load them, what do they say."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from weft_contracts.digest import LORA
from weft_contracts.engines import BUILTIN, FileFormat, Profiles
from weft_contracts.facts.source import BuiltinSource, PathSource, Source
from weft_contracts.facts.values import Weights
from weft_contracts.source_keys import NoSource, source_of
from weft_gguf.weights import weights_of_header
from weft_sources.config_weights import MOST_CONFIG, config_body, weights_of_config
from weft_sources.metadata_names import CONFIG
from weft_sources.refused import SourceRefused
from weft_sources.safetensors_header import tensor_bytes_of

from weft_worker_agent.outbound.files.fingerprint import fingerprint
from weft_worker_agent.outbound.files.found import Found, NotFound
from weft_worker_agent.outbound.files.lora_files import look_at_lora
from weft_worker_agent.outbound.files.metadata import offers
from weft_worker_agent.outbound.files.sources import Files, SourceMissing, files_of


def look(source: str, engine: str, engines: Profiles = BUILTIN, formats: Sequence[FileFormat] = ()) -> Found:
    """Look at a source, given by its key, for one of the engines. Reads headers and hashes metadata files: call it in
    a thread. `formats`: what an engine loads that this node doesn't know yet. Raises NotFound."""
    profile = engines.get(engine)
    if profile is not None:
        formats = profile.formats
    elif not formats:
        raise NotFound(f"this node knows no engine {engine}")
    if source.startswith(LORA):
        return look_at_lora(Path(source.removeprefix(LORA)), engine, formats)
    if not formats:
        return Found(None, 0, Weights(format="none"), ())
    try:
        named = source_of(source)
        format = _format_of(named, formats)
        files = files_of(named, format)
    except (NoSource, SourceMissing) as missing:
        raise NotFound(str(missing)) from None
    if files is None:
        raise NotFound(f"{engine} needs model files, and the source {source} has none")
    found, parts = _looked(files, format, engine)
    if isinstance(named, BuiltinSource):  # it changes with the installation, and no one deploys it anew then
        return replace(found, tokenizer="")
    try:
        own = fingerprint(parts)
    except OSError as error:
        raise _unreadable(files.path, error) from None
    return replace(found, weights=found.weights.model_copy(update={"fingerprint": own}))


def look_at_fetched(folder: Path, first: str, engine: str) -> Found:
    """Look at a model that was fetched; `first`: the first of its files, by which its format is known.

    Its content was verified when it came, so it has no fingerprint. Raises NotFound.
    """
    gguf = first.lower().endswith(".gguf")
    path = folder / first if gguf else folder
    return _looked(Files(path, (folder,)), "gguf" if gguf else "safetensors", engine)[0]


def _looked(files: Files, format: FileFormat, engine: str) -> tuple[Found, list[Path]]:
    try:
        os.stat(files.path)
        return _READERS[format](files, engine)
    except OSError as error:
        raise _unreadable(files.path, error) from None


def _unreadable(path: Path, error: OSError) -> NotFound:
    match error:
        case FileNotFoundError():
            return NotFound(f"{path} does not exist on this node")
        case NotADirectoryError():
            return NotFound(f"{path} does not exist on this node: a part of its path is a file")
        case PermissionError():
            return NotFound(f"{path} may not be read by this node's worker (user {os.getuid()})")
        case _:
            return NotFound(f"{path} can't be read on this node: {error.strerror or error}")


def _format_of(source: Source, formats: Sequence[FileFormat]) -> FileFormat:
    """How the source is written that the engine should load: a folder holds safetensors, a file is GGUF."""
    if isinstance(source, PathSource):
        likely: FileFormat = "safetensors" if os.path.isdir(source.path) else "gguf"
        if likely in formats:
            return likely
    return formats[0]


def _gguf(files: Files, engine: str) -> tuple[Found, list[Path]]:
    """What a GGUF file holds, and all files that it consists of."""
    from weft_gguf.header import GgufError
    from weft_gguf.split import read_model

    path = files.path
    if path.is_dir():
        raise NotFound(f"{path} is a folder, and {engine} loads one GGUF file: name the file")
    if not path.is_file():
        raise NotFound(f"{path} is no ordinary file")
    try:
        header, parts = read_model(path)
    except GgufError as error:
        raise NotFound(f"{path}: {error}") from None
    if header.kind == "adapter":
        raise NotFound(f"{path} is an adapter and no model")
    weights = weights_of_header(header)
    offered = offers(files.metadata_folders, header.chat_template, shipped=files.shipped)
    return Found(path, header.file_bytes, weights, offered, header.tokenizer), list(parts)


def _safetensors(files: Files, engine: str) -> tuple[Found, list[Path]]:
    """What a folder holds, and its weight files."""
    folder = files.path
    if not folder.is_dir():
        raise NotFound(f"{folder} is a file, and {engine} loads a folder with safetensors files: name the folder")
    parts = sorted(folder.glob("*.safetensors"))
    if not parts:
        raise NotFound(f"{folder} holds no safetensors file")
    config = folder / CONFIG
    if not os.path.lexists(config):
        raise NotFound(f"{folder} holds safetensors files and no {CONFIG}")
    for each in (config, *parts):
        if not each.is_file():  # a pipe or a device has no end, and may be led to by a link
            raise NotFound(f"{each} is no ordinary file")
    if config.stat().st_size > MOST_CONFIG:
        raise NotFound(f"{config} is larger than any model's configuration")
    content = config.read_bytes()
    size = sum(part.stat().st_size for part in parts)
    try:
        types = tensor_bytes_of(parts)
        weights = weights_of_config(config_body(content, str(config)), size, str(config), types)
    except SourceRefused as refused:
        raise NotFound(str(refused)) from None
    return Found(folder, size, weights, offers(files.metadata_folders, shipped=files.shipped)), parts


_READERS: Mapping[FileFormat, Callable[[Files, str], tuple[Found, list[Path]]]] = {
    "gguf": _gguf,
    "safetensors": _safetensors,
}
"""By format: what a model of this format on disk holds, and its weight files."""
