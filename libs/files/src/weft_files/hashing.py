"""A file's hashes, made while it comes."""

import hashlib

from blake3 import blake3

from weft_files.checksum import Checksum
from weft_files.faults import Mismatch


class Hashing:
    """Takes a file's bytes in order: blake3 always, and what is declared besides."""

    def __init__(self, size: int, checksum: Checksum | None) -> None:
        """`size` goes into a repository's blob id."""
        self.at = 0
        self._declared = checksum
        self._blake3 = blake3()
        algorithm = None if checksum is None else checksum.algorithm
        self._sha256 = hashlib.sha256() if algorithm == "sha256" else None
        self._git = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False) if algorithm == "git" else None

    def update(self, data: memoryview) -> None:
        self._blake3.update(data)
        if self._sha256 is not None:
            self._sha256.update(data)
        if self._git is not None:
            self._git.update(data)
        self.at += len(data)

    def finish(self) -> str:
        """The content's blake3. Raises Mismatch."""
        digits = self._blake3.hexdigest()
        found = {"blake3": digits, "etag": None}
        if self._sha256 is not None:
            found["sha256"] = self._sha256.hexdigest()
        if self._git is not None:
            found["git"] = self._git.hexdigest()
        if self._declared is not None:
            came = found[self._declared.algorithm]
            if came is not None and came != self._declared.digits:
                want = self._declared
                raise Mismatch(f"checksum mismatch: {want.algorithm}:{came} came, {want} is wanted")
        return digits
