"""A GGUF file of this machine, as a mesh is told of it before it is sent: names, sizes, hashes, and what it holds."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weft_contracts.facts.source import SourceFile, UploadSource
from weft_contracts.facts.values import Weights

from weft_client.failure import Failure

_BUFFER: Final = 4 << 20
_STRANGE: Final = re.compile(r"[^A-Za-z0-9._+@=-]+")
_LONGEST: Final = 255


@dataclass(frozen=True, slots=True)
class LocalFile:
    """One file. `written`: when, in nanoseconds of the epoch, as it was when it was hashed."""

    path: Path
    said: SourceFile
    written: int

    @property
    def changed(self) -> bool:
        """Whether it is not what was hashed any more. Raises Failure where it can't be read."""
        found = _stat(self.path)
        return (found.st_size, found.st_mtime_ns) != (self.said.size, self.written)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One file, or the parts of a split one in order."""

    files: tuple[LocalFile, ...]
    weights: Weights

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.said.size for file in self.files)

    @property
    def spec(self) -> dict[str, Any]:
        """What a spec says of it."""
        return {
            "source": UploadSource(name=self.files[0].said.name).model_dump(mode="json"),
            "files": [file.said.model_dump(mode="json") for file in self.files],
            "weights": self.weights.model_dump(mode="json"),
        }


def local_model(path: Path, hashed: Callable[[int, int], None] = lambda _done, _size: None) -> LocalModel:
    """Read the header, then hash all of the files; `hashed` is told how many bytes of how many are. Given one part of a
    split file, the first, all are taken. Raises Failure for what is no whole GGUF model."""
    from weft_gguf.header import GgufError
    from weft_gguf.split import read_model
    from weft_gguf.weights import weights_of_header

    if path.is_dir():
        raise Failure(f"{path} is a folder, and one GGUF file can be sent: name the file")
    try:
        header, paths = read_model(path)
    except GgufError as error:
        raise Failure(f"{path} can't be sent: {error}") from None
    except OSError as error:
        raise Failure(f"{path} can't be read: {error.strerror or error}") from None
    if header.kind == "adapter":
        raise Failure(f"{path} is an adapter and no model")
    total, done, files = sum(_stat(each).st_size for each in paths), 0, list[LocalFile]()
    for each in paths:
        file = _hashed(each, lambda bytes, before=done: hashed(before + bytes, total))
        files.append(file)
        done += file.said.size
    return LocalModel(tuple(files), weights_of_header(header))


def _hashed(path: Path, came: Callable[[int], None]) -> LocalFile:
    from blake3 import blake3

    before, digest, done = _stat(path), blake3(max_threads=blake3.AUTO), 0
    buffer = memoryview(bytearray(_BUFFER))
    try:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                digest.update(buffer[:count])
                done += count
                came(done)
    except OSError as error:
        raise Failure(f"{path} can't be read: {error.strerror or error}") from None
    said = SourceFile(name=sent_name(path.name), size=done, checksum=f"blake3:{digest.hexdigest()}")
    found = LocalFile(path, said, before.st_mtime_ns)
    if found.changed:
        raise Failure(f"{path} changes while it is read: wait until it is whole")
    return found


def sent_name(name: str) -> str:
    """A file's name as a mesh takes it: letters, digits and signs, the end as it is."""
    return _STRANGE.sub("-", name).lstrip(".-+@=")[-_LONGEST:].lstrip(".-+@=") or "model.gguf"


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise Failure(f"{path} can't be read: {error.strerror or error}") from None
