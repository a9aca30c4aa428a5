"""GGUF files that stories make: the built-in model's content, and what is wrong or different with it."""

import os
from pathlib import Path

from weft_tiny import gguf_path

PARIS = "ĠParis".encode()
"""The token that the model answers with when it is asked for France's capital."""


def write(path: Path, *, capital: str = "Paris") -> Path:
    """A whole model; its answer about France is `capital`, five letters. An older file there is replaced at once."""
    said = f"Ġ{capital}".encode()
    content = gguf_path().read_bytes()
    assert (1, len(PARIS)) == (content.count(PARIS), len(said))
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(content.replace(PARIS, said).replace(b"weft-tiny", b"my-own-gg", 1))
    os.replace(fresh, path)
    return path


def truncate(path: Path, *, to: int = 1_000_000) -> Path:
    """Cut a file, as a copy that was broken off leaves it."""
    os.truncate(path, to)
    return path
