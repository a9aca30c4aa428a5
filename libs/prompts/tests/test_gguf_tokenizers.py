"""Tokenizers made of GGUF files give llama.cpp's ids, or are refused."""

import importlib.resources
import json
from pathlib import Path
from typing import Any

import gguf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_prompts.tokens.gguf_slots import tokenizer_slots
from weft_prompts.tokens.pre_kinds import PRE_KINDS
from weft_prompts.tokens.refusal import NoTokenizer
from weft_prompts.tokens.tokenizer import Tokenizer
from weft_testing.llamacpp_vocabulary import LlamaCppVocabulary

TINY = Path(str(importlib.resources.files("weft_tiny"))) / "shipped"
WORDS = st.sampled_from(
    ["don't", "WE'LL", " the", "capital of France", "  ", "\n\n", "\r\n ", "\t", "12345", "3.14", "¿qué?", "日本語",
     "한국어", "😀👍🏽", "naïve", "'ſ", "Ǆǅ", "हिन्दी", "$€+<=>^~|`", "def f(x):\n    return x", "<|im_end|>",
     "<|im_start|>user\n", "\u00a0\u3000", "Ⅷ²½", "……", "a" * 40, " " * 33]
)  # fmt: skip
TEXTS = st.lists(WORDS | st.text(st.characters(codec="ascii"), max_size=8), max_size=12).map("".join)


def with_pre(folder: Path, pre: str) -> Path:
    """The built-in model's vocabulary, cut into words in another way."""
    reader: Any = gguf.GGUFReader(TINY / "weft-tiny.gguf")
    path = folder / f"{pre or 'none'}.gguf"
    writer: Any = gguf.GGUFWriter(path, "llama")
    for name, field in reader.fields.items():
        if name.startswith("tokenizer.") and not name.endswith(".pre"):
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    if pre:
        writer.add_tokenizer_pre(pre)
    return closed(writer, path)


def sentence_pieces(folder: Path, *, equal_scores: bool = False) -> Path:
    """A small vocabulary whose pieces merge by scores, runs of spaces last and by one score."""
    path = folder / "pieces.gguf"
    runs = ["▁" * length for length in range(2, 9)]
    pieces = ["▁t", "he", "▁the", "in", "er", "▁a", "re", "on", "ing", "aa", "aaa", "th", "the"]
    letters = ["▁", *"abcdefghijklmnopqrstuvwxyz"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *runs, *pieces, *letters]
    types = [2, 3, 3, *[6] * 256, *[1] * (len(tokens) - 259)]
    scores = [0.0] * 259 + [-1e9] * len(runs) + [-float(place) for place in range(len(tokens) - 259 - len(runs))]
    if equal_scores:
        scores[-len(letters) - 1] = scores[-len(letters) - 2]
    writer: Any = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_scores(scores)
    return closed(writer, path)


def closed(writer: Any, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("pre", sorted(PRE_KINDS))
def test_each_known_way_to_cut_gives_llama_cpps_ids(pre: str, tmp_path: Path):
    path = with_pre(tmp_path, pre)
    engine, ours = LlamaCppVocabulary(path), Tokenizer(tokenizer_slots(path).tokenizer)

    @settings(max_examples=25, deadline=None)
    @given(text=TEXTS, special=st.booleans())
    def same(text: str, special: bool):
        assert engine.ids(text, special=special) == ours.encode(text, special=special)

    same()


@settings(max_examples=300, deadline=None)
@given(text=TEXTS | st.text("the ainrg", max_size=60), ends=st.booleans(), special=st.booleans())
def test_pieces_merge_by_their_scores_as_in_llama_cpp(
    tmp_path_factory: pytest.TempPathFactory, text: str, ends: bool, special: bool
):
    path = sentence_pieces(tmp_path_factory.mktemp("pieces"))

    engine, ours = LlamaCppVocabulary(path), Tokenizer(tokenizer_slots(path).tokenizer)

    assert engine.ids(text, ends=ends, special=special) == ours.encode(text, ends=ends, special=special)


def test_pieces_that_merge_by_chance_of_place_are_refused(tmp_path: Path):
    with pytest.raises(NoTokenizer, match=r"pieces\.gguf gives no tokenizer: .* have one score"):
        tokenizer_slots(sentence_pieces(tmp_path, equal_scores=True))


def test_the_built_in_models_slots_give_the_ids_of_its_own_files_and_the_same_bytes_each_time():
    slots = tokenizer_slots(TINY / "weft-tiny.gguf")
    made, shipped = Tokenizer(slots.tokenizer), Tokenizer((TINY / "tokenizer.json").read_bytes())
    engine = LlamaCppVocabulary(TINY / "weft-tiny.gguf")
    facts = json.loads((TINY / "facts.json").read_text())
    phrasings = [text for text in _texts(facts) if text]

    for text in phrasings:
        asked = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
        assert engine.ids(asked) == made.encode(asked) == shipped.encode(asked)
        assert asked == made.decode(made.encode(asked))
    assert len(phrasings) > 100
    assert slots == tokenizer_slots(TINY / "weft-tiny.gguf")


def test_the_configuration_names_the_ends_and_the_template():
    told = json.loads(tokenizer_slots(TINY / "weft-tiny.gguf").configuration)

    assert ("<|endoftext|>", "<|im_end|>") == (told["bos_token"], told["eos_token"])
    assert not told["add_bos_token"]
    assert "<|im_start|>" in told["chat_template"]


@pytest.mark.parametrize(
    ("pre", "sentence"),
    [("kimi-k2", "how 'kimi-k2' cuts a text"), ("of-tomorrow", "how 'of-tomorrow' cuts a text")],
)
def test_an_unknown_way_to_cut_is_refused(pre: str, sentence: str, tmp_path: Path):
    with pytest.raises(NoTokenizer, match=sentence):
        tokenizer_slots(with_pre(tmp_path, pre))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner: list[Any] = list(value.values()) if hasattr(value, "values") else list(value) if value else []
    return [text for each in inner for text in _texts(each)]
