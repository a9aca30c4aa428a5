r"""What a stranger's `tokenizer.json` may hold before it is loaded.

`tokenizers` believes its file: padding to a length of 2^40 is made, each step of a normalizer may double the text,
and its regular expressions (Oniguruma) try each way to match: `(a+)+$` takes twice as long for each letter more, until
it panics after about 0.1 s (`tokenizer` catches that). So only patterns that are known here are taken.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard

from weft_prompts.tokens.pre_kinds import LINE_BY_LINE, OFTEN, PRE_KINDS
from weft_prompts.tokens.refusal import NoTokenizer

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of a file; the largest in use have 33 MB."""
MAX_TOKENS: Final = 1_000_000
MAX_MERGES: Final = 2_000_000
MAX_ADDED: Final = 20_000
MAX_TOKEN: Final = 4096
"""Characters of a token, an added one too."""
MAX_STEPS: Final = 32
"""Steps of a normalizer, a pre-tokenizer or a decoder together."""
MAX_GROWTH: Final = 64
"""How many times longer the replacements of a normalizer or a decoder may make a text."""
KNOWN_MODELS: Final = frozenset({"BPE", "Unigram", "WordPiece", "WordLevel"})
KNOWN_PATTERNS: Final = frozenset(
    (LINE_BY_LINE, *OFTEN, *(each for kind in PRE_KINDS.values() for each in kind.patterns))
)


def checked(data: bytes) -> Mapping[str, Any]:
    """The file as JSON; raises NoTokenizer for what is too large, or might take boundless time or memory."""
    if len(data) > MAX_BYTES:
        raise NoTokenizer(f"tokenizer.json has {len(data)} bytes: {MAX_BYTES} are read at most")
    try:
        told: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise NoTokenizer("tokenizer.json is not JSON") from None
    model: Any = told.get("model") if is_object(told) else None
    if not is_object(model) or model.get("type", "BPE") not in KNOWN_MODELS:
        raise NoTokenizer(f"tokenizer.json names no model of {', '.join(sorted(KNOWN_MODELS))}")
    counted: tuple[tuple[str, Any, int], ...] = (
        ("tokens", model.get("vocab"), MAX_TOKENS),
        ("merges", model.get("merges"), MAX_MERGES),
        ("added tokens", told.get("added_tokens"), MAX_ADDED),
    )
    for what, items, most in counted:
        if (is_object(items) or is_list(items)) and len(items) > most:
            raise NoTokenizer(f"tokenizer.json has {len(items)} {what}: {most} are taken at most")
    longest = max(map(len, _token_texts(model.get("vocab"), told.get("added_tokens"))), default=0)
    if longest > MAX_TOKEN:
        raise NoTokenizer(f"tokenizer.json has a token of {longest} characters: {MAX_TOKEN} are taken at most")
    for part in ("normalizer", "pre_tokenizer", "decoder"):
        growth(part, told.get(part))
    return told


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether it was an object in JSON."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether it was a list in JSON."""
    return isinstance(value, list)


def _token_texts(vocabulary: Any, added: Any) -> Iterator[str]:
    """Of an object of ids by texts, or a list of texts with their scores; and of the added tokens."""
    if is_object(vocabulary):
        yield from vocabulary
    for each in vocabulary if is_list(vocabulary) else ():
        if is_list(each) and each and isinstance(each[0], str):
            yield each[0]
    for each in added if is_list(added) else ():
        if is_object(each) and isinstance(text := each.get("content"), str):
            yield text


def growth(part: str, held: Any) -> float:
    """How many times longer a part of the file makes a text, at most. Raises NoTokenizer above the bounds."""
    times = 1.0
    for count, step in enumerate(_steps(held), 1):
        pattern: Any = step.get("pattern")
        content, plain = step.get("content"), ""
        if is_object(pattern):
            plain, regex = pattern.get("String"), pattern.get("Regex")
            if isinstance(regex, str):
                check_pattern(regex)
        if isinstance(content, str):
            times *= max(1.0, len(content) / max(1, len(plain) if isinstance(plain, str) else 1))
        prepended = step.get("prepend", step.get("replacement"))
        if isinstance(prepended, str):
            times *= max(1, len(prepended))
        if count > MAX_STEPS or times > MAX_GROWTH:
            raise NoTokenizer(
                f"tokenizer.json's {part} has more than {MAX_STEPS} parts, or makes texts {MAX_GROWTH} times longer"
            )
    return times


def _steps(held: Any) -> Iterator[dict[str, Any]]:
    """All objects in this part, however deep: the JSON reader has bounded the depth."""
    waiting = [held]
    while waiting:
        each: Any = waiting.pop()
        if is_object(each):
            yield each
            waiting += each.values()
        elif is_list(each):
            waiting += each


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that no known tokenizer has: which of the others take boundless time, nobody can tell."""
    if pattern not in KNOWN_PATTERNS:
        raise NoTokenizer(f"the pattern {pattern[:64]!r} of tokenizer.json is of no known tokenizer, and may never end")
