"""The built-in embedder: a tiny BERT for the table of weft-tiny. Files only; nothing to import at run time."""

from pathlib import Path

NAME = "tiny-embed"
"""As `weft deploy` and a spec's source call it."""


def folder() -> Path:
    """The model's files: GGUF, and its tokenizer beside it."""
    return Path(__file__).parent / "shipped"


def gguf_path() -> Path:
    """The model for llama.cpp."""
    return folder() / "weft-tiny-embed.gguf"
