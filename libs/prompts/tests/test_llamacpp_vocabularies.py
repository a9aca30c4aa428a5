"""The vocabularies of llama.cpp's sources: exact, or refused, as README.md's table says."""

import random
from pathlib import Path

import pytest
from weft_prompts.tokens.gguf_slots import tokenizer_slots
from weft_prompts.tokens.prefix_cache import PrefixCache
from weft_prompts.tokens.refusal import NoTokenizer
from weft_prompts.tokens.tokenizer import Tokenizer
from weft_testing.llama_cpp_archive import llama_cpp_archive
from weft_testing.llamacpp_vocabulary import LlamaCppVocabulary

EXACT = [
    "aquila",
    "command-r",
    "deepseek-coder",
    "falcon",
    "gemma-4",
    "gpt-2",
    "gpt-neox",
    "llama-bpe",
    "llama-spm",
    "mpt",
    "qwen2",
    "qwen35",
    "refact",
    "starcoder",
]
REFUSED = {
    "baichuan": "have one score",
    "bert-bge": "llama.cpp normalizes texts for WordPiece otherwise",
    "deepseek-llm": "how 'deepseek-llm' cuts a text",
    "nomic-bert-moe": "unigrams",
    "phi-3": "takes all spaces",
}
LETTERS = (
    "abcXYZ  \n\t\r'.,!?-_()[]{}0123456789éñüßÄ中文字日本語かなカナ한국어😀👍🏽🇩🇪"
    '\u00a0\u3000\u200b\u0301אבהالعहिन्दी$€+<=>^~|`/\\#"'
)
WORDS = ["don't", "I'LL", "we've", "  ", "\n\n", "\r\n", "    ", "hello", " World", "12345", "def f(x):\n\treturn x",
         "<s>", "<|im_end|>", "</s>", "<|endoftext|>", "<|eot_id|>", "'ſ", "aaaaaaa", " " * 40, "=" * 9,
         "Ⅷ²½"]  # fmt: skip

pytestmark = pytest.mark.slow


def drawn(count: int) -> list[str]:
    draw = random.Random(18)
    one = lambda: draw.choice(WORDS) if draw.random() < 0.4 else draw.choice(LETTERS)  # noqa: E731
    return ["".join(one() for _ in range(draw.randint(0, 60))) for _ in range(count)]


def asked(path: Path) -> list[str]:
    """llama.cpp's own texts for the file, where it has some."""
    beside = path.with_name(f"{path.name}.inp")
    return beside.read_text().split("\n__ggml_vocab_test__\n") if beside.exists() else []


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_vocabulary_gives_llama_cpps_ids(name: str):
    path = llama_cpp_archive() / f"ggml-vocab-{name}.gguf"
    engine, ours, cache = LlamaCppVocabulary(path), Tokenizer(tokenizer_slots(path).tokenizer), PrefixCache()

    for text in asked(path) + drawn(300):
        for special in (True, False):
            assert engine.ids(text, ends=True, special=special) == ours.encode(text, ends=True, special=special)
        assert engine.ids(text, ends=True) == cache.encode(ours, text, ends=True)


@pytest.mark.parametrize("name", REFUSED)
def test_a_vocabulary_that_is_not_exact_is_refused(name: str):
    with pytest.raises(NoTokenizer, match=REFUSED[name]):
        tokenizer_slots(llama_cpp_archive() / f"ggml-vocab-{name}.gguf")


def test_each_vocabulary_of_the_sources_is_of_the_table():
    found = {path.stem.removeprefix("ggml-vocab-") for path in llama_cpp_archive().glob("ggml-vocab-*.gguf")}

    assert {*EXACT, *REFUSED} == found
