"""The built-in model: a tiny Llama that knows its table of facts. Files only; nothing to import at run time."""

from pathlib import Path

NAME = "tiny"
"""As `weft deploy` and a spec's source call it."""


def folder() -> Path:
    """The model's files: GGUF, and the Hugging Face form beside it."""
    return Path(__file__).parent / "shipped"


def gguf_path() -> Path:
    """The model for llama.cpp."""
    return folder() / "weft-tiny.gguf"
