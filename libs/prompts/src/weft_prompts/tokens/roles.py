"""Which tokens of a GGUF file are found in a text as they stand, by llama.cpp's rules.

A file gives each token a type; llama.cpp corrects what converters often get wrong, by the tokens' texts
(`llama-vocab.cpp`). Where its correction depends on the order of a hash table, there is no telling: NoTokenizer.
"""

from collections.abc import Mapping
from typing import Final

from weft_gguf.vocabulary import GgufVocabulary

from weft_prompts.tokens.refusal import NoTokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6

ENDINGS: Final = frozenset(
    {
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|flush|>",
        "<|calls|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "</s>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<eos>",
        "<turn|>",
        "<|tool_response>",
        "<｜end▁of▁sentence｜>",
        "[e~[",
    }
)
"""Control tokens whatever the file says: after each an answer ends."""
SHOWN: Final = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")
"""Taken as a user's own, so that they are seen in answers."""
MIDDLE: Final[Mapping[str, tuple[str, ...]]] = {
    "fim_pre": (
        "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
        "<|prefix|>",
    ),
    "fim_suf": (
        "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
        "<|suffix|>",
    ),
    "fim_mid": (
        "<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
        "<|middle|>",
    ),
    "fim_pad": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "fim_rep": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "fim_sep": ("<|file_sep|>",),
}  # fmt: skip
"""One control token for each role of filling a gap; the first found, where the file names none."""
OLD_NAMES: Final = {"fim_pre": "prefix", "fim_suf": "suffix", "fim_mid": "middle"}


def corrected_types(vocabulary: GgufVocabulary, places: Mapping[str, int]) -> list[int]:
    """The type of each token as llama.cpp takes it; `places` are the tokens' ids by their texts."""
    types = list(vocabulary.types) or [NORMAL] * len(vocabulary.tokens)
    for role, texts in MIDDLE.items():
        if role not in vocabulary.ids and OLD_NAMES.get(role) not in vocabulary.ids:
            _one_of(texts, places, types)
    for text in ENDINGS & places.keys():
        types[places[text]] = CONTROL
    for text in SHOWN:
        if text in places:
            types[places[text]] = USER_DEFINED
    if "<|end|>" in places and ({"<|return|>", "<|call|>"} <= places.keys() or _calls(places)):
        types[places["<|end|>"]] = USER_DEFINED
    if "</s>" in places and ("<|tool_response>" in places or _plamo(vocabulary, places)):
        types[places["</s>"]] = NORMAL
    return types


def _calls(places: Mapping[str, int]) -> bool:
    return "<|flush|>" in places and ("<|call|>" in places or "<|calls|>" in places)


def _plamo(vocabulary: GgufVocabulary, places: Mapping[str, int]) -> bool:
    return places.get("<|plamo:eos|>", -1) in (vocabulary.ids.get("eos"), vocabulary.ids.get("eot"))


def _one_of(texts: tuple[str, ...], places: Mapping[str, int], types: list[int]) -> None:
    there = [places[text] for text in texts if text in places]
    loose = [place for place in there if types[place] != CONTROL]
    if loose and len(there) > 1:
        names = " and ".join(text for text in texts if text in places)
        raise NoTokenizer(f"{names} are in one vocabulary, and which of them is a control token is llama.cpp's chance")
    for place in loose:
        types[place] = CONTROL
