"""What a file's content must come to, in the words of whoever names the file."""

import re
from dataclasses import dataclass
from typing import Final, Literal, cast

Algorithm = Literal["blake3", "sha256", "git", "etag"]
FORMS: Final = "blake3: or sha256: and 64 hexadecimal digits, git: and 40, or etag: and 1 to 256 printable characters"
_DIGITS: Final[dict[str, re.Pattern[str]]] = {
    "blake3": re.compile(r"[0-9a-f]{64}"),
    "sha256": re.compile(r"[0-9a-f]{64}"),
    "git": re.compile(r"[0-9a-f]{40}"),
    "etag": re.compile(r"[!-~]{1,256}"),
}


class BadChecksum(ValueError):
    """A text that is no checksum; its message says what one is."""


@dataclass(frozen=True, slots=True)
class Checksum:
    """`git` is the SHA-1 of a repository's blob; `etag` tells no content, only another version of it."""

    algorithm: Algorithm
    digits: str

    def __post_init__(self) -> None:
        form = _DIGITS.get(self.algorithm)
        if form is None or not form.fullmatch(self.digits):
            raise BadChecksum(f"{str(self)[:80]!r} is no checksum: want {FORMS}")

    @classmethod
    def parse(cls, text: str) -> "Checksum":
        """Of `algorithm:digits`. Raises BadChecksum."""
        algorithm, colon, digits = text.partition(":")
        if not colon:
            raise BadChecksum(f"{text[:80]!r} is no checksum: want {FORMS}")
        return cls(cast(Algorithm, algorithm), digits)

    @property
    def tells_content(self) -> bool:
        """Whether two files with it are the same."""
        return self.algorithm != "etag"

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.digits}"
