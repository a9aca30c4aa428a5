"""A folder of safetensors of this machine, as it is sent: weights, and the small files that engines read as data."""

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from weft_contracts.facts.source import SourceFile
from weft_contracts.source_faults import fault_of_files
from weft_sources.choice import choose
from weft_sources.config_weights import MOST_CONFIG, config_body, weights_of_config
from weft_sources.found import FoundFile
from weft_sources.metadata_names import CONFIG
from weft_sources.refused import SourceRefused
from weft_sources.safetensors_choice import MOST_INDEX
from weft_sources.safetensors_header import tensor_bytes_of

from weft_client.failure import Failure
from weft_client.local_files import LocalModel, hashed_files

_HASH: Final = f"blake3:{'0' * 64}"
_MOST: Final = 10_000
"""Names of one folder."""


def is_model_folder(path: Path) -> bool:
    """Whether it is a folder with a model's configuration beside safetensors files."""
    return (path / CONFIG).is_file() and any(path.glob("*.safetensors"))


def local_folder(folder: Path, hashed: Callable[[int, int], None]) -> LocalModel:
    """Choose the files as workers do at a hub, read the configuration, then hash all; `hashed` is told how many bytes
    of how many are.

    What lies in folders of it is not sent, nor code, nor what is hidden. Raises Failure for what is no whole model, and
    where one of its files is a link out of the folder, or no ordinary file.
    """
    try:
        found = _found(folder)
        chosen = choose(found, ("safetensors",), "", str(folder), lambda file: _small(folder, file.name, MOST_INDEX))
        paths = {file.name: _own(folder, file.name) for file in chosen if file.size or not _is_small(file)}
        if (
            fault := fault_of_files(tuple(SourceFile(name=name, size=1, checksum=_HASH) for name in paths))
        ) is not None:
            raise Failure(f"{folder} can't be sent: {fault}")
        where = str(folder / CONFIG)
        types = tensor_bytes_of([path for name, path in paths.items() if name.endswith(".safetensors")])
        weights = weights_of_config(config_body(_small(folder, CONFIG, MOST_CONFIG), where), 0, where, types)
    except SourceRefused as refused:
        raise Failure(str(refused)) from None
    except OSError as error:
        raise Failure(f"{error.filename or folder} can't be read: {error.strerror or error}") from None
    files = hashed_files(paths, hashed)
    size = sum(file.said.size for file in files if not _is_small(file.said))
    others = tuple(sorted({file.name for file in found} - paths.keys()))
    return LocalModel(files, weights.model_copy(update={"weight_bytes": size}), others)


def _is_small(file: SourceFile) -> bool:
    return not file.name.endswith(".safetensors")


def _found(folder: Path) -> Sequence[FoundFile]:
    """What lies in it, whatever it is. Raises Failure where that is more than any model's, and OSError."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry, _ in zip(entries, range(_MOST + 1), strict=False)]
    if len(names) > _MOST:
        raise Failure(f"{folder} holds more than {_MOST} files: name a folder with one model")
    found = [FoundFile(name, _size(folder / name)) for name in sorted(names)]
    if not any(name.endswith(".safetensors") for name in names) and any(name.endswith(".gguf") for name in names):
        raise Failure(f"{folder} is a folder with GGUF files: name the one that is meant")
    return found


def _size(path: Path) -> int | None:
    """Bytes of a file; None of a folder, and of a link to nothing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return None if stat.S_ISDIR(found.st_mode) else found.st_size


def _small(folder: Path, name: str, most: int) -> bytes:
    """Raises Failure and OSError."""
    path = _own(folder, name)
    with path.open("rb") as file:
        body = file.read(most + 1)
    if len(body) > most:
        raise Failure(f"{path} is larger than {most} bytes, and no model's is")
    return body


def _own(folder: Path, name: str) -> Path:
    """A file that lies in the folder itself. Raises Failure for one that doesn't."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise Failure(
            f"{path} is a link out of its folder, and what lies elsewhere is not sent: make it a copy (cp -L)"
        )
    if not path.is_file():
        raise Failure(f"{path} is no ordinary file")
    return path
