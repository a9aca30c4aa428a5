"""Token ids as text, cut at whole characters, and as bytes. vLLM's own detokenizer is not used beside this one."""

from collections.abc import Callable, Sequence
from typing import Final

from weft_engine.adapters.vllm_native import Tokenizer, decode_stream

BEFORE: Final = 8
"""Ids before the answer by which a tokenizer knows whether a space belongs to the next one."""
BROKEN: Final = "\ufffd"


class AnswerText:
    """One answer's text, an id at a time."""

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int], *, marks: bool = False) -> None:
        """`before`: the ids that the answer follows. `marks`: tokens that only mark are text, too."""
        self._tokenizer = tokenizer
        self._marks = marks
        self._step = self._stepper(list(before[-BEFORE:]))

    def feed(self, token_id: int) -> str:
        """The text that is whole now; empty: a character is not complete, or the id has no text."""
        try:
            return self._step(token_id) or ""
        except Exception:  # bytes that are no text can upset the tokenizer's stream, which then is begun anew
            self._step = self._stepper([])
            return self._step(token_id) or ""

    def _stepper(self, before: list[int]) -> Callable[[int], str | None]:
        fast = decode_stream(self._tokenizer, before, marks=self._marks)
        return fast or _DecodedAnew(self._tokenizer, before, marks=self._marks)


class _DecodedAnew:
    """For tokenizers without a stream: decodes the last ids with and without the new one."""

    def __init__(self, tokenizer: Tokenizer, before: list[int], *, marks: bool) -> None:
        self._tokenizer = tokenizer
        self._options = {"skip_special_tokens": not marks}
        self._known = before
        self._pending: list[int] = []

    def __call__(self, token_id: int) -> str:
        self._pending.append(token_id)
        before = self._tokenizer.decode(self._known, **self._options)
        whole = self._tokenizer.decode([*self._known, *self._pending], **self._options)
        if len(whole) <= len(before) or whole.endswith(BROKEN):
            return ""
        self._known = [*self._known, *self._pending][-2 * BEFORE :]
        self._pending = []
        return whole[len(before) :]


class TokenBytes:
    """The bytes of single tokens, which may be a part of a character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._found: dict[int, bytes] = {}
        self._letters = letters_of_bytes()

    def of(self, token_id: int) -> bytes:
        """One token's bytes."""
        found = self._found.get(token_id)
        if found is None:
            found = self._found[token_id] = self._look(token_id)
        return found

    def _look(self, token_id: int) -> bytes:
        token = self._tokenizer.convert_ids_to_tokens([token_id])[0] or ""
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            return bytes([int(token[3:5], 16)])
        text = self._tokenizer.decode([token_id], skip_special_tokens=False)
        if token.startswith("▁") and not text.startswith(" "):
            text = f" {text}"
        if BROKEN in text and all(letter in self._letters for letter in token):
            return bytes(self._letters[letter] for letter in token)
        return text.encode()


def letters_of_bytes() -> dict[str, int]:
    """The letters that stand for bytes in a byte-level vocabulary, as GPT-2 chose them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}
