"""What tests want, and what they find on a store's disk."""

import hashlib
import random
from pathlib import Path

from blake3 import blake3
from weft_files import Bounds, Checksum, Store, Wanted

QUICK = Bounds(
    piece=1 << 16,
    parallel_from=1 << 18,
    buffer=1 << 14,
    silence=1.0,
    answer=2.0,
    window=0.5,
    least=20_000,
    tries=2,
    pause=0.01,
    most_pause=0.02,
    held=20.0,
    look=0.02,
)
"""Small, so that little files show what large ones do."""


def content(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def wanted(body: bytes, algorithm: str = "blake3", *, size: bool = True, cap: int = 1 << 30) -> Wanted:
    return Wanted("model.gguf", len(body) if size else None, checksum(body, algorithm), cap)


def checksum(body: bytes, algorithm: str) -> Checksum | None:
    match algorithm:
        case "blake3":
            return Checksum("blake3", blake3(body).hexdigest())
        case "sha256":
            return Checksum("sha256", hashlib.sha256(body).hexdigest())
        case "git":
            return Checksum("git", hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest())
        case _:
            return None


def left(store: Store) -> list[Path]:
    """Files that a transfer left: content, halves, reservations."""
    folders = ("blobs", "marks", "index", "partial", "layouts", "manifests")
    found = [path for folder in folders for path in (store.folder / folder).rglob("*") if path.is_file()]
    return found + [path for path in (store.folder / "room").iterdir() if path.name != ".lock"]
