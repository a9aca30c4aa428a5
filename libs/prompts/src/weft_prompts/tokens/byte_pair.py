"""Byte-level BPE ("gpt2") and BPE over characters ("gemma4") of a GGUF file as a `tokenizer.json`."""

from collections.abc import Mapping
from typing import Final

from weft_gguf.vocabulary import GgufVocabulary

from weft_prompts.tokens.added import Json, added_tokens, end_token, ends, places_of, whole
from weft_prompts.tokens.pre_kinds import LINE_BY_LINE, cutting, pre_kind
from weft_prompts.tokens.refusal import NoTokenizer

OLD_END: Final = 11
"""Which token begins and ends texts where a "gpt2" file names none, by llama.cpp's default."""
BYTES_AS_LETTERS: Final[Json] = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
SPACE: Final = "▁"
BYTES: Final = tuple(f"<0x{byte:02X}>" for byte in range(256))


def byte_level(vocabulary: GgufVocabulary) -> Json:
    """A `tokenizer.json` of a "gpt2" vocabulary; raises NoTokenizer."""
    kind, places = pre_kind(vocabulary.pre), places_of(vocabulary)
    steps = [*cutting(kind.patterns), {**BYTES_AS_LETTERS, "use_regex": False}]
    before = end_token(vocabulary, "bos", OLD_END, wanted=vocabulary.flags.get("add_bos_token", kind.starts))
    after = end_token(vocabulary, "eos", OLD_END, wanted=vocabulary.flags.get("add_eos_token", False))
    return whole(
        added_tokens(vocabulary, places),
        None,
        {"type": "Sequence", "pretokenizers": steps},
        ends(places, before, after),
        BYTES_AS_LETTERS,
        merging(places, merges_of(vocabulary, places), whole_words=kind.whole_words),
    )


def by_characters(vocabulary: GgufVocabulary) -> Json:
    """A `tokenizer.json` of a "gemma4" vocabulary, which merges whole lines; raises NoTokenizer."""
    places = places_of(vocabulary)
    bytes_there(places)
    before = end_token(vocabulary, "bos", None, wanted=True)
    after = end_token(vocabulary, "eos", None, wanted=vocabulary.flags.get("add_eos_token", False))
    return whole(
        added_tokens(vocabulary, places),
        {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        {"type": "Sequence", "pretokenizers": cutting((LINE_BY_LINE,))},
        ends(places, before, after),
        spaced_decoder(strip=0),
        merging(places, merges_of(vocabulary, places), byte_fallback=True),
    )


def merging(
    places: Mapping[str, int], merges: list[tuple[str, str]], *, whole_words: bool = False, byte_fallback: bool = False
) -> Json:
    """The model that merges pairs, the first of the list first."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": byte_fallback,
        "ignore_merges": whole_words,
        "vocab": dict(places),
        "merges": merges,
    }


def merges_of(vocabulary: GgufVocabulary, places: Mapping[str, int]) -> list[tuple[str, str]]:
    """The file's merges as pairs. Raises NoTokenizer for one that makes or takes what is no token."""
    pairs: dict[tuple[str, str], None] = {}
    for merge in vocabulary.merges:
        at = merge.find(" ", 1)
        pair = merge[:at], merge[at + 1 :]
        if at < 0 or not {*pair, pair[0] + pair[1]} <= places.keys():
            raise NoTokenizer(f"the merge {merge[:64]!r} is not of two tokens that make a third")
        pairs.setdefault(pair)
    if not pairs:
        raise NoTokenizer("the file holds no merges")
    return list(pairs)


def bytes_there(places: Mapping[str, int]) -> None:
    """Raises NoTokenizer where a byte is missing that a character without a token would become."""
    missing = [name for name in BYTES if name not in places]
    if missing:
        raise NoTokenizer(f"{len(missing)} of the 256 tokens for single bytes are missing, such as {missing[0]}")


def spaced_decoder(*, strip: int) -> Json:
    """Ids back to text where spaces are written as characters; `strip` spaces are taken from its beginning."""
    steps: list[Json] = [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if strip:
        steps.append({"type": "Strip", "content": " ", "start": strip, "stop": 0})
    return {"type": "Sequence", "decoders": steps}
