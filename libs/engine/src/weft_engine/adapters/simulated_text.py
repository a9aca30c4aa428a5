"""The simulated engine's language: a fixed vocabulary, a tokenizer, and answers that depend on prompt and seed."""

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from typing import Final
from zlib import crc32

from weft_contracts.gen import session_pb2 as pb

VOCABULARY: Final = 4096
PIECES: Final = re.compile(r"\s?[^\s]{1,8}|\s")
ROLES: Final = 70_000
"""Ids from here on stand for the beginning of a message."""


@cache
def words() -> list[str]:
    """The vocabulary: words of two to eight letters, one in 32 with letters outside ASCII."""
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "el", "or")]
    found: list[str] = []
    for i in range(VOCABULARY):
        word = syllables[i % len(syllables)] + syllables[i // len(syllables) % len(syllables)]
        found.append(word[:6] + "é€" if i % 32 == 31 else word)
    return found


@cache
def ids_by_word() -> dict[str, int]:
    """The vocabulary backwards, so that an answer's text gives its ids again."""
    return {word: i for i, word in enumerate(words())}


def text_of(token_id: int, position: int) -> str:
    """The text of an answer's token; all but the first have a space before them."""
    word = words()[token_id % VOCABULARY]
    return word if position == 0 else " " + word


def ids_of(text: str) -> list[int]:
    """Token ids of a text: about one for each word, more for long ones."""
    known = ids_by_word()
    found: list[int] = []
    for piece in PIECES.findall(text):
        word = known.get(piece.lstrip())
        found.append(VOCABULARY + crc32(piece.encode()) % 60_000 if word is None else word)
    return found


def prompt_ids(prompt: pb.Prompt) -> list[int]:
    """Token ids of a prompt; a chat's messages begin with a token for the role."""
    match prompt.WhichOneof("prompt"):
        case "tokens":
            return list(prompt.tokens.ids)
        case "chat":
            found: list[int] = []
            for message in prompt.chat.messages:
                found.append(ROLES + crc32(message.role.encode()) % 1000)
                found.extend(ids_of(message.content))
            return found
        case _:
            return ids_of(prompt.text)


def last_words(prompt: pb.Prompt) -> str:
    """The text that was said last."""
    if prompt.WhichOneof("prompt") == "chat":
        return prompt.chat.messages[-1].content if prompt.chat.messages else ""
    return prompt.text


class SimulatedAnswer:
    """What the engine will say to a prompt: a function of prompt, seed and position, and of nothing else."""

    def __init__(self, prompt: Sequence[int], seed: int) -> None:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(seed.to_bytes(8, "little"))
        for token in prompt:
            digest.update(token.to_bytes(4, "little"))
        self._key = digest.digest()
        self.length = 16 + int.from_bytes(self._key[:2], "little") % 97
        """tokens until the end token"""

    def token(self, position: int) -> int:
        """The token at a position, from 0."""
        drawn = hashlib.blake2b(position.to_bytes(4, "little"), key=self._key, digest_size=4).digest()
        return int.from_bytes(drawn, "little") % VOCABULARY
