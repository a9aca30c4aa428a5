"""The tokenizer files of a model card, made from a GGUF file: the same bytes on each node for the same file."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft_gguf.vocabulary import GgufVocabulary, read_vocabulary

from weft_prompts.tokens.added import Json
from weft_prompts.tokens.byte_pair import by_characters, byte_level
from weft_prompts.tokens.refusal import NoTokenizer
from weft_prompts.tokens.sentence_piece import sentence_piece

MAKERS: Final[Mapping[str, Callable[[GgufVocabulary], Json]]] = {
    "gpt2": byte_level,
    "gemma4": by_characters,
    "llama": sentence_piece,
}
REFUSED: Final[Mapping[str, str]] = {
    "bert": "llama.cpp normalizes texts for WordPiece otherwise than `tokenizers` does, in Hangul among others",
    "t5": "unigrams that are normalized by a table of the file's own are not made here",
    "": "the file names no kind of tokenizer",
}
ROLES: Final = {
    "bos": "bos_token",
    "eos": "eos_token",
    "unknown": "unk_token",
    "padding": "pad_token",
    "seperator": "sep_token",
    "cls": "cls_token",
    "mask": "mask_token",
}


@dataclass(frozen=True, slots=True)
class TokenizerSlots:
    """Contents of files."""

    tokenizer: bytes
    """`tokenizer.json`"""
    configuration: bytes
    """`tokenizer_config.json`, with the chat template where the file has one"""


def tokenizer_slots(path: Path) -> TokenizerSlots:
    """Make a GGUF file's tokenizer; about 2 s of CPU for 262,144 tokens.

    Raises NoTokenizer where it would not surely give llama.cpp's ids, and what `read_vocabulary` raises.
    """
    vocabulary = read_vocabulary(path)
    maker = MAKERS.get(vocabulary.model)
    if maker is None:
        why = REFUSED.get(vocabulary.model, f"tokenizers of the kind {vocabulary.model[:64]!r} are not known here")
        raise NoTokenizer(f"{path.name} gives no tokenizer: {why}")
    try:
        made = maker(vocabulary)
    except NoTokenizer as refused:
        raise NoTokenizer(f"{path.name} gives no tokenizer: {refused}") from None
    return TokenizerSlots(_written(made), _written(_configuration(vocabulary, made)))


def _configuration(vocabulary: GgufVocabulary, made: Json) -> Json:
    tokens = vocabulary.tokens
    kept: Json = {
        name: tokens[vocabulary.ids[role]]
        for role, name in ROLES.items()
        if 0 <= vocabulary.ids.get(role, -1) < len(tokens)
    }
    around: Json = made["post_processor"] or {"single": [{"Sequence": {}}]}
    first, last = around["single"][0], around["single"][-1]
    kept |= {"add_bos_token": "SpecialToken" in first, "add_eos_token": "SpecialToken" in last}
    if vocabulary.chat_template:
        kept["chat_template"] = vocabulary.chat_template
    return kept | {"clean_up_tokenization_spaces": False, "tokenizer_class": "PreTrainedTokenizerFast"}


def _written(value: Json) -> bytes:
    """Without spaces, in the order that it was made in."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
