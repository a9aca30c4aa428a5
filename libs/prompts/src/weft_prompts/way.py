"""Who puts what a model wants around each prompt, its first token mostly, around a rendered chat."""

from enum import StrEnum


class Way(StrEnum):
    """Engines differ in it."""

    TEMPLATE = "template"
    """The template writes it, and nothing is added: vLLM and `transformers`."""
    TOKENIZER = "tokenizer"
    """The tokenizer adds it, and what the template wrote of it is left out: llama.cpp."""
