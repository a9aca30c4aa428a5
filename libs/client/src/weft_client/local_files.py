"""Files of this machine, as a mesh is told of them before they are sent: names, sizes, hashes, and what they hold."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weft_contracts.facts.source import SourceFile, UploadSource
from weft_contracts.facts.values import Weights

from weft_client.failure import Failure

_BUFFER: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class LocalFile:
    """One file. `written`: when, in nanoseconds of the epoch, as it was when it was hashed."""

    path: Path
    said: SourceFile
    written: int

    @property
    def changed(self) -> bool:
        """Whether it is not what was hashed any more. Raises Failure where it can't be read."""
        found = status(self.path)
        return (found.st_size, found.st_mtime_ns) != (self.said.size, self.written)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One GGUF file, the parts of a split one in order, or a folder's safetensors files and then its small ones."""

    files: tuple[LocalFile, ...]
    weights: Weights
    others: tuple[str, ...] = ()
    """Names of what lies in the folder, too, and is not sent."""

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


def hashed_files(paths: Mapping[str, Path], hashed: Callable[[int, int], None]) -> tuple[LocalFile, ...]:
    """The files by the names that a mesh is told, in this order; `hashed` is told how many bytes of how many are.
    Raises Failure where one can't be read, or changes meanwhile."""
    total, done, files = sum(status(each).st_size for each in paths.values()), 0, list[LocalFile]()
    for name, path in paths.items():
        file = _hashed(name, path, lambda bytes, before=done: hashed(before + bytes, total))
        files.append(file)
        done += file.said.size
    return tuple(files)


def status(path: Path) -> os.stat_result:
    """Raises Failure where it can't be read."""
    try:
        return path.stat()
    except OSError as error:
        raise Failure(f"{path} can't be read: {error.strerror or error}") from None


def _hashed(name: str, path: Path, came: Callable[[int], None]) -> LocalFile:
    from blake3 import blake3

    before, digest, done = status(path), blake3(max_threads=blake3.AUTO), 0
    buffer = memoryview(bytearray(_BUFFER))
    try:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                digest.update(buffer[:count])
                done += count
                came(done)
    except OSError as error:
        raise Failure(f"{path} can't be read: {error.strerror or error}") from None
    said = SourceFile(name=name, size=done, checksum=f"blake3:{digest.hexdigest()}")
    found = LocalFile(path, said, before.st_mtime_ns)
    if found.changed:
        raise Failure(f"{path} changes while it is read: wait until it is whole")
    return found
