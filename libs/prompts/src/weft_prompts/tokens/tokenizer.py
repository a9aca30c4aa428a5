"""Text to token ids and back, by a model's `tokenizer.json`, as its engine does it."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import tokenizers

from weft_prompts.tokens.bounds import checked, growth, is_object
from weft_prompts.tokens.cuts import Cuts, cuts_of
from weft_prompts.tokens.refusal import NoTokenizer

MAX_CHARACTERS: Final = 8_000_000
"""Of a text; what is longer fits no model."""
MAX_SPELLED: Final = 8 << 20
"""Characters of all tokens whose text, or whose strings, are asked for at once."""


class TextTooLong(ValueError):
    """A text that is not tokenized, or not made of ids, at all. The text of the error is one sentence."""


class Tokenizer:
    """A loaded tokenizer. Any thread may use it; others run while a text is encoded.

    Texts go to `tokenizers` one by one, so they are encoded by one thread, and a process that forks is not warned.
    """

    def __init__(self, data: bytes) -> None:
        """Load a `tokenizer.json`; raises NoTokenizer for one that is broken or above the bounds (`bounds`)."""
        told = checked(data)
        self._data = data
        self.digest: bytes = hashlib.blake2b(data, digest_size=16).digest()
        """of the file: by which prefix caches tell tokenizers apart"""
        named: list[Any] = told.get("added_tokens") or []
        self.added: tuple[dict[str, Any], ...] = tuple(each for each in named if is_object(each))
        """tokens that are cut out of a text as they stand, as the file tells them"""
        self._growth = growth("decoder", told.get("decoder"))
        self._native = _loaded(data)
        self.cuts: Cuts | None = cuts_of(self.added, lambda text, ends: self.encode(text, ends=ends))
        """where a text may be cut; None: nowhere"""

    @property
    def vocabulary(self) -> int:
        """How many tokens it has."""
        return self._native.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, *, ends: bool = False, special: bool = True) -> list[int]:
        """The ids of a text, 1.5 to 2 µs of CPU a token.

        With `ends`, what the model wants before and after each text is put there. Without `special`, control tokens
        that are written in the text are taken as letters. Raises TextTooLong, and NoTokenizer where a pattern of the
        file takes too long for this text (`tokenizers` gives up after about 0.1 s).
        """
        if len(text) > MAX_CHARACTERS:
            raise TextTooLong(f"the text has {len(text)} characters: {MAX_CHARACTERS} are tokenized at most")
        native = self._native if special else self._native_of_letters
        # a text may hold half a pair of UTF-16, which JSON can say and UTF-8 can't
        return _encoded(native, text.encode(errors="replace").decode(), ends)

    def count(self, text: str, *, ends: bool = False, special: bool = True) -> int:
        """How many ids `encode` gives."""
        return len(self.encode(text, ends=ends, special=special))

    def decode(self, ids: Sequence[int], *, special: bool = True, most: int = MAX_SPELLED) -> str:
        """The text of ids; without `special`, control tokens are left out.

        Raises ValueError for what is no id, and TextTooLong where the text might have more than `most` characters.
        """
        for _ in self._pieces(ids, int(most / self._growth)):
            pass
        return self._native.decode(list(ids), skip_special_tokens=not special)

    def pieces(self, ids: Sequence[int], *, most: int = MAX_SPELLED) -> list[str]:
        """Each id's token as the vocabulary spells it. Raises what `decode` raises."""
        return list(self._pieces(ids, most))

    def _pieces(self, ids: Sequence[int], most: int) -> Iterator[str]:
        """One after the other, so that no more than `most` characters are ever made."""
        left = most
        for each in ids:
            piece = self._piece(each)
            left -= len(piece)
            if left < 0:
                raise TextTooLong(f"the {len(ids)} tokens have more than {most} characters together: ask for fewer")
            yield piece

    def _piece(self, id: int) -> str:
        found: str | None = self._native.id_to_token(id) if 0 <= id < 2**32 else None
        if found is None:
            raise ValueError(f"{id} is no token of this model: it has {self.vocabulary}")
        return found

    @cached_property
    def _native_of_letters(self) -> Any:
        """A second one, made when it is first asked for: the setting would change under other threads."""
        native = _loaded(self._data)
        native.encode_special_tokens = True
        return native


def _loaded(data: bytes) -> Any:
    try:
        native: Any = tokenizers.Tokenizer.from_buffer(data)
        native.no_padding()
        native.no_truncation()
    except BaseException as error:
        raise _refused(error, "can't be loaded") from None
    return native


def _encoded(native: Any, text: str, ends: bool) -> list[int]:
    try:
        # of the library's ways the one that lets other threads run, at half the cost: it keeps no offsets
        (found,) = native.encode_batch_fast([text], add_special_tokens=ends)
        return found.ids
    except BaseException as error:
        raise _refused(error, "gave up on a text") from None


def _refused(error: BaseException, what: str) -> BaseException:
    """The library's panics are no Exceptions; other interruptions go on as they are."""
    if isinstance(error, Exception) or type(error).__name__ == "PanicException":
        return NoTokenizer(f"tokenizer.json {what}: {str(error)[:200]}")
    return error
