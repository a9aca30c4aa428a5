r"""How a text is cut into words before byte pairs are merged, by the name that llama.cpp gives each way.

Patterns are for Oniguruma, which `tokenizers` uses, and mean what llama.cpp's do, also where those differ from the
model's first tokenizer: of GPT-4o's kind, letters beyond ASCII are of both cases. Where llama.cpp compares ASCII
letters alone, nothing is left to case folding ("(?i:'s)" would take the long s).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from weft_prompts.tokens.refusal import NoTokenizer

QUICK: Final = r"'s|'t|'re|'ve|'m|'ll|'d"
"""What English hangs on a word, in small letters."""
ANY_CASE: Final = r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
SPACES: Final = r"\s+(?!\S)|\s+"
LINES: Final = r"\s*[\r\n]+"
WORD: Final = r"[^\r\n\p{L}\p{N}]?\p{L}+"
SIGNS: Final = r" ?[^\s\p{L}\p{N}]+"
THREE_DIGITS: Final = r"\p{N}{1,3}"
DIGIT: Final = r"\p{N}"
PUNCTUATION: Final = r"[!-/:-@\[-`{-~]"

LINE_BY_LINE: Final = r"[^\n]+|\n+"
GPT2: Final = rf"{QUICK}| ?\p{{L}}+| ?\p{{N}}+|{SIGNS}|{SPACES}"


def _llama3(digits: str, *, quick: str = f"{ANY_CASE}|") -> str:
    return rf"{quick}{WORD}|{digits}|{SIGNS}[\r\n]*|{LINES}|{SPACES}"


def _gpt4o(ending: str, digits: str) -> str:
    upper, lower = r"[\p{L}&&[^a-z]]", r"[\p{L}&&[^A-Z]]"
    start = r"[^\r\n\p{L}\p{N}]?"
    words = rf"{start}{upper}*{lower}+{ending}|{start}{upper}+{lower}*{ending}"
    return rf"{words}|{digits}|{SIGNS}[\r\n/]*|{LINES}|{SPACES}"


def _cased(ending: str, digits: str) -> str:
    upper, lower, start = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"[^\r\n\p{L}\p{N}]?"
    words = f"{start}{upper}*{lower}+{ending}|{start}{upper}+{lower}*{ending}"
    return rf"{words}|{digits}|{SIGNS}[\r\n/]*|{LINES}|{SPACES}"


DEEPSEEK3: Final = (
    THREE_DIGITS,
    "[一-龥\u3040-ゟ゠-ヿ]+",
    rf"{PUNCTUATION}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*"
    rf"|{LINES}|{SPACES}",
)


@dataclass(frozen=True, slots=True)
class PreKind:
    """One way of cutting."""

    patterns: tuple[str, ...]
    """each cuts every piece that the one before left, into its matches and what stands between"""
    whole_words: bool = False
    """a word that is a token stays whole, whatever the merges say"""
    starts: bool = False
    """a text begins with the beginning token where the file says nothing of it"""


_BY_KIND: Final[tuple[tuple[tuple[str, ...], PreKind], ...]] = (
    (
        ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
        PreKind((_llama3(THREE_DIGITS),), whole_words=True, starts=True),
    ),
    (("dbrx", "smaug-bpe", "chatglm-bpe"), PreKind((_llama3(THREE_DIGITS),))),
    (("glm4", "glm5"), PreKind((_llama3(THREE_DIGITS),), whole_words=True)),
    (
        ("qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2"),
        PreKind((_llama3(DIGIT),)),
    ),
    (
        ("qwen35",),
        PreKind(
            (
                rf"{ANY_CASE}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|{DIGIT}"
                rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{LINES}|{SPACES}",
            )
        ),
    ),
    (("deepseek-v3", "hunyuan-dense", "joyai-llm"), PreKind(DEEPSEEK3)),
    (
        ("deepseek-coder",),
        PreKind((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u0800-一가-\ud7ff]+", DIGIT)),
    ),
    (("falcon",), PreKind((r"[\p{P}$+<=>^~|`]+", GPT2, r"[0-9][0-9][0-9]"))),
    (("", "default"), PreKind((r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"))),
    (
        ("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"),
        PreKind((DIGIT, GPT2)),
    ),
    (
        ("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "a.x-4.0", "mellum",
         "exaone4"),
        PreKind((GPT2,)),
    ),
    (("gpt-4o", "llama4", "kanana2", "minimax-m2"), PreKind((_gpt4o(f"(?:{ANY_CASE})?", THREE_DIGITS),))),
    (("tekken",), PreKind((_gpt4o("", DIGIT),), whole_words=True, starts=True)),
    (("seed-coder",), PreKind((rf"{ANY_CASE}|{WORD}|{DIGIT}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{LINES}|{SPACES}",))),
    (
        ("bailingmoe", "bailingmoe2", "llada-moe"),
        PreKind((rf"{ANY_CASE}|{WORD}|{DIGIT}|{SIGNS}[\r\n]*|\s*[\r\n]|{SPACES}",)),
    ),
)  # fmt: skip
PRE_KINDS: Final = {name: kind for names, kind in _BY_KIND for name in names}


FOLDED: Final = rf"(?i:{QUICK})"
OFTEN: Final = (
    *(_llama3(digits, quick=f"{FOLDED}|") for digits in (THREE_DIGITS, DIGIT)),
    rf"{FOLDED}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|{DIGIT}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{LINES}|{SPACES}",
    *(_cased(f"{ending}", digits) for ending in ("", f"{FOLDED}?") for digits in (THREE_DIGITS, DIGIT)),
)
"""How models' own `tokenizer.json` files write some of these."""


def pre_kind(name: str) -> PreKind:
    """How a text is cut for a file's `tokenizer.ggml.pre`. Raises NoTokenizer for a way that isn't known here."""
    kind = PRE_KINDS.get(name)
    if kind is None:
        raise NoTokenizer(f"how {name[:64]!r} cuts a text before byte pairs are merged is not known here")
    return kind


def cutting(patterns: Iterable[str]) -> list[dict[str, object]]:
    """The steps of a `tokenizer.json` that cut by these patterns, one after the other."""
    return [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in patterns
    ]
