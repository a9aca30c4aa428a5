"""Ids of chats that grow: what was tokenized before is not tokenized again.

A text is cut before each of its control tokens. Neither merging nor cutting into words goes over such a token, so the
ids of the parts, one after the other, are the ids of the whole. Each part is kept under a hash of all text up to its
end: chats that begin alike share their beginnings, and a chat takes memory once, not once a turn.
"""

import hashlib
import re
import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from weft_prompts.tokens.tokenizer import MAX_CHARACTERS, Tokenizer

ENTRY_BYTES: Final = 320
"""What an entry takes beside its ids: a hash, an array, a place in the order."""
MAX_PARTS: Final = 4096
"""Of a text; what stands behind is tokenized each time."""


class PrefixCache:
    """Parts of texts with their ids, of any number of tokenizers, the least used forgotten above `most_bytes`.

    A hit costs a hash of the text (1 ms a megabyte) and a copy of the ids. Ids are never those of another tokenizer
    or text: the key is a hash (BLAKE2b, 128 bits) of the tokenizer's file and all text before. How long an answer
    takes does tell whether a beginning was seen before: callers who must not know of one another have `whose` of
    their own.
    """

    def __init__(self, most_bytes: int = 64 * 1024 * 1024) -> None:
        self._most = most_bytes
        self._parts: OrderedDict[bytes, array[int]] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0
        """held now"""

    def encode(self, tokenizer: Tokenizer, text: str, *, ends: bool = False, whose: bytes = b"") -> list[int]:
        """What `tokenizer.encode(text, ends=ends)` gives, and raises.

        `whose`: of at most 64 bytes; what was tokenized for others is not found.
        """
        cuts = tokenizer.cuts
        if cuts is None or len(text) > MAX_CHARACTERS:
            return tokenizer.encode(text, ends=ends)
        ids = list(cuts.before) if ends else []
        touched: list[tuple[bytes, array[int]]] = []
        end = 0
        for start, stop, key in _parts(tokenizer, text, cuts.marker, whose):
            part = self._parts.get(key)
            if part is None:
                part = array("I", tokenizer.encode(text[start:stop]))
            touched.append((key, part))
            ids.extend(part)
            end = stop
        self._keep(touched)
        ids.extend(tokenizer.encode(text[end:]))
        if ends:
            ids.extend(cuts.after)
        return ids

    def _keep(self, touched: "list[tuple[bytes, array[int]]]") -> None:
        """Note what was used, a text's beginning last: without it nothing that follows is found."""
        with self._lock:
            for key, part in reversed(touched):
                if key not in self._parts:
                    self.bytes += _size(part)
                    self._parts[key] = part
                self._parts.move_to_end(key)
            while self.bytes > self._most:
                _, part = self._parts.popitem(last=False)
                self.bytes -= _size(part)


def _parts(tokenizer: Tokenizer, text: str, marker: re.Pattern[str], whose: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Begin, end and key of each part that a marker follows."""
    hashed = hashlib.blake2b(tokenizer.digest, digest_size=16, key=whose)
    start = 0
    for count, found in enumerate(marker.finditer(text)):
        stop = found.start()
        if count >= MAX_PARTS:
            return
        if stop > start:
            hashed.update(text[start:stop].encode(errors="replace"))
            yield start, stop, hashed.copy().digest()
            start = stop


def _size(part: "array[int]") -> int:
    return ENTRY_BYTES + len(part) * part.itemsize
