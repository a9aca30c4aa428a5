"""The vocabulary of a GGUF file, read whole and in bounds: what a tokenizer is made of.

`header.read_header` hops over it, since placement and loading need none of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from weft_gguf.facts import Facts
from weft_gguf.reader import Array, GgufError, HeaderReader, NotGguf, Value

MAX_TOKENS: Final = 1_000_000
"""The largest in use have 262,144."""
MAX_MERGES: Final = 2_000_000
MAX_CHARSMAP: Final = 8 * 1024 * 1024
"""Bytes of the table by which SentencePiece normalizes."""
MAX_VALUE_BYTES: Final = 192 * 1024 * 1024
"""All values of a header, of which the vocabulary is nearly all."""

KEY: Final = "tokenizer.ggml."
LONG: Final[Mapping[str, int]] = MappingProxyType(
    {
        f"{KEY}tokens": MAX_TOKENS,
        f"{KEY}token_type": MAX_TOKENS,
        f"{KEY}scores": MAX_TOKENS,
        f"{KEY}merges": MAX_MERGES,
        f"{KEY}precompiled_charsmap": MAX_CHARSMAP,
    }
)

Kind = TypeVar("Kind", int, bool)


@dataclass(frozen=True, slots=True)
class GgufVocabulary:
    """What a file says of its tokens. Ids are places in `tokens`; None where the file leaves a thing to llama.cpp."""

    architecture: str
    name: str
    model: str
    """ "gpt2" (byte-level BPE), "llama" (SentencePiece), "bert" (WordPiece), "t5" (unigrams), …"""
    pre: str
    """how a text is cut before BPE, by llama.cpp's name; empty when the file has none"""
    tokens: tuple[str, ...]
    types: tuple[int, ...]
    """1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte; empty when the file has none"""
    scores: tuple[float, ...]
    merges: tuple[str, ...]
    charsmap: bytes
    ids: Mapping[str, int]
    """tokens with a role by the role: "bos", "eos", "eot", "unknown", "seperator", "padding", "mask", "fim_pre", …"""
    flags: Mapping[str, bool]
    """ "add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix", "remove_extra_whitespaces", …"""
    chat_template: str


def read_vocabulary(path: Path) -> GgufVocabulary:
    """Read a model file's vocabulary (of a model in several files: the first); 0.8 s of CPU for 262,144 tokens.

    Raises NotGguf for another kind of file, a broken header or one above the bounds, TruncatedGguf, OSError. The
    messages are one sentence each.
    """
    with path.open("rb") as file:
        reader = HeaderReader(file, path.name, path.stat().st_size, hurried=False, long=LONG, most=MAX_VALUE_BYTES)
        _, _, count = reader.preamble()
        values = reader.values(count)
    facts, items = Facts(path.name, values), _Items(path.name, values)
    return GgufVocabulary(
        architecture=facts.text("general.architecture"),
        name=facts.text("general.name"),
        model=facts.text(f"{KEY}model"),
        pre=facts.text(f"{KEY}pre"),
        tokens=items.texts("tokens"),
        types=items.integers("token_type"),
        scores=items.numbers("scores"),
        merges=items.texts("merges"),
        charsmap=items.octets("precompiled_charsmap"),
        ids=_named(values, "_token_id", int),
        flags=_named(values, "", bool),
        chat_template=facts.text("tokenizer.chat_template"),
    )


def _named(values: Mapping[str, Value], ending: str, kind: type[Kind]) -> dict[str, Kind]:
    """The file's numbers, or switches, by their short names."""
    found: dict[str, Kind] = {}
    for key, value in values.items():
        # a switch is a number to Python, and none here
        if key.startswith(KEY) and key.endswith(ending) and isinstance(value, kind) and type(value) is kind:
            found[key.removeprefix(KEY).removesuffix(ending)] = value
    return found


class _Items:
    """The header's arrays, each asked for with its type."""

    def __init__(self, file: str, values: Mapping[str, Value]) -> None:
        self._file = file
        self._values = values

    def texts(self, key: str) -> tuple[str, ...]:
        items = self._array(key).items
        texts = tuple(item for item in items if isinstance(item, str))
        self._all_of(key, len(texts), "texts")
        return texts

    def integers(self, key: str) -> tuple[int, ...]:
        numbers = tuple(item for item in self._array(key).items if type(item) is int)
        self._all_of(key, len(numbers), "whole numbers")
        return numbers

    def numbers(self, key: str) -> tuple[float, ...]:
        numbers = tuple(float(item) for item in self._array(key).items if type(item) is int or type(item) is float)
        self._all_of(key, len(numbers), "numbers")
        return numbers

    def octets(self, key: str) -> bytes:
        """A table of bytes, which files hold with a sign or without."""
        numbers = tuple(item for item in self._array(key).items if type(item) is int and -128 <= item <= 255)
        self._all_of(key, len(numbers), "bytes")
        return bytes(number & 255 for number in numbers)

    def _array(self, key: str) -> Array:
        value = self._values.get(f"{KEY}{key}", Array(0, ()))
        if not isinstance(value, Array):
            raise NotGguf(f"{self._file} is not a readable GGUF file: {KEY}{key} is no list")
        return value

    def _all_of(self, key: str, found: int, what: str) -> None:
        if found != self._array(key).length:
            raise NotGguf(f"{self._file} is not a readable GGUF file: {KEY}{key} does not hold {what} alone")


__all__ = ["GgufError", "GgufVocabulary", "read_vocabulary"]
