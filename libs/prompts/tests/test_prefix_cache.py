"""A text's ids are the same with and without what was kept of its beginning."""

import importlib.resources
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_prompts.tokens.cuts import MAX_ADDED_CHARACTERS, MAX_MARKER, MAX_MARKERS, safe_markers
from weft_prompts.tokens.prefix_cache import PrefixCache
from weft_prompts.tokens.tokenizer import Tokenizer

SHIPPED = Path(str(importlib.resources.files("weft_tiny"))) / "shipped" / "tokenizer.json"
TINY = Tokenizer(SHIPPED.read_bytes())
OTHER = Tokenizer(SHIPPED.read_bytes() + b"\n")
"""The same tokenizer in another file."""
PIECES = st.sampled_from(
    ["<|im_start|>", "<|im_end|>", "\n", "user\n", "<|im_", "start|>", " ", "  ", "don't", "Paris", "日本", "😀",
     "<|endoftext|>"]
)  # fmt: skip
TURNS = st.lists(st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join), max_size=6)


@settings(max_examples=300, deadline=None)
@given(turns=TURNS, most=st.sampled_from([0, 1000, 4000, 1_000_000]), ends=st.booleans())
def test_a_chat_that_grows_has_the_ids_of_its_whole_text(turns: list[str], most: int, ends: bool):
    cache, text = PrefixCache(most), ""

    for turn in turns:
        text += turn
        assert TINY.encode(text, ends=ends) == cache.encode(TINY, text, ends=ends)
        assert cache.bytes <= most


@settings(max_examples=100, deadline=None)
@given(one=TURNS, other=TURNS)
def test_chats_that_share_a_cache_do_not_share_ids(one: list[str], other: list[str]):
    cache = PrefixCache()

    for text in ("".join(one), "".join(other), "".join(one + other), "".join(other + one)):
        assert TINY.encode(text) == cache.encode(TINY, text)


def test_what_was_kept_is_not_tokenized_again_and_not_taken_for_another_model():
    cache, start = PrefixCache(), "<|im_start|>user\nHello<|im_end|>\n"
    cache.encode(TINY, start * 3)
    held = cache.bytes

    cache.encode(TINY, start * 3)
    assert held == cache.bytes
    cache.encode(OTHER, start * 3)
    assert 2 * held == cache.bytes


def test_what_was_kept_for_one_is_not_found_for_another():
    cache, start = PrefixCache(), "<|im_start|>user\nHello<|im_end|>\n"
    ids = cache.encode(TINY, start * 3, whose=b"one")
    held = cache.bytes

    assert ids == cache.encode(TINY, start * 3, whose=b"another")
    assert 2 * held == cache.bytes
    assert ids == cache.encode(TINY, start * 3, whose=b"one")
    assert 2 * held == cache.bytes


def test_texts_are_cut_only_at_tokens_that_no_other_can_overlap():
    added: tuple[dict[str, Any], ...] = tuple(
        {"content": content, "special": special, "rstrip": content == "<strips>"}
        for content, special in (("<s>", True), ("<s>x", False), ("<e>", True), ("ab<f", True), ("<fog>", True),
                                 ("<strips>", True), ("[aXa[", True), ("<user>", False))
    )  # fmt: skip

    assert ["<e>"] == safe_markers(added)


SPECIALS = tuple({"content": f"<{number:04}>", "special": True} for number in range(2000))


def test_a_file_of_many_or_long_added_tokens_has_its_texts_not_cut():
    assert MAX_MARKERS == len(safe_markers(SPECIALS))
    rest = MAX_ADDED_CHARACTERS - sum(len(str(each["content"])) for each in SPECIALS)
    filling = [{"content": "x" * MAX_MARKER}] * (rest // MAX_MARKER) + [{"content": "y" * (rest % MAX_MARKER)}]
    assert MAX_MARKERS == len(safe_markers((*SPECIALS, *filling)))
    assert [] == safe_markers((*SPECIALS, *filling, {"content": "z"}))
    assert ["<a>"] == safe_markers(({"content": "<a>", "special": True}, {"content": "b" * MAX_MARKER}))
    assert [] == safe_markers(({"content": "<a>", "special": True}, {"content": "b" * (MAX_MARKER + 1)}))


def test_only_so_many_tokens_are_held_against_the_others_as_texts_may_be_cut_at():
    inside_another = {"content": "<0000>x", "special": False}

    assert [each["content"] for each in SPECIALS[1:MAX_MARKERS]] == safe_markers((*SPECIALS[:-1], inside_another))


WORDS = st.text(alphabet="abc", min_size=1, max_size=6)


@given(texts=st.lists(WORDS, max_size=6))
def test_a_text_of_added_tokens_is_safe_while_no_other_overlaps_it(texts: list[str]):
    def meets(text: str, other: str) -> bool:
        within = text != other and (text in other or other in text)
        return within or any(
            text[:size] == other[-size:] or other[:size] == text[-size:]
            for size in range(1, min(len(text), len(other)))
        )

    safe = [text for text in texts if len(text) >= 3 and not any(meets(text, other) for other in texts)]
    assert safe == safe_markers([{"content": text, "special": True} for text in texts])


def test_where_texts_may_be_cut_is_known_once_a_tokenizer_is_loaded(monkeypatch: pytest.MonkeyPatch):
    loaded = Tokenizer(SHIPPED.read_bytes())
    asked: list[str] = []
    encode = loaded.encode

    def noted(text: str, *, ends: bool = False) -> list[int]:
        asked.append(text)
        return encode(text, ends=ends)

    monkeypatch.setattr(loaded, "encode", noted)
    PrefixCache().encode(loaded, "Hello<|im_end|>", ends=True)

    assert ["Hello", "<|im_end|>"] == asked


def with_many(contents: Iterable[str]) -> Tokenizer:
    """The shipped one with as many control tokens more."""
    told = json.loads(SHIPPED.read_text())
    own = told["added_tokens"]
    many = [own[0] | {"id": 2048 + number, "content": content} for number, content in enumerate(contents)]
    return Tokenizer(json.dumps(told | {"added_tokens": own + many}).encode())


def test_texts_of_a_file_of_many_added_tokens_are_cut_and_have_the_same_ids():
    tokenizer, cache = with_many(f"<|audio_{number}|>" for number in range(3_000)), PrefixCache()
    text = "<|im_start|>user\nHi<|audio_7|><|audio_2999|>x<|im_end|>\n<|im_start|>assistant\n"

    for _ in range(2):
        assert tokenizer.encode(text, ends=True) == cache.encode(tokenizer, text, ends=True)
    assert cache.bytes


def test_texts_of_a_file_of_more_added_tokens_are_tokenized_whole():
    tokenizer, cache = with_many(f"<{number:0120}>" for number in range(MAX_ADDED_CHARACTERS // 120)), PrefixCache()

    assert tokenizer.encode("Hi<7>", ends=True) == cache.encode(tokenizer, "Hi<7>", ends=True)
    assert (None, 0) == (tokenizer.cuts, cache.bytes)
