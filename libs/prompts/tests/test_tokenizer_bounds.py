"""What a stranger's tokenizer.json may not do."""

import importlib.resources
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from weft_prompts.tokens import bounds, tokenizer
from weft_prompts.tokens.pre_kinds import PRE_KINDS
from weft_prompts.tokens.refusal import NoTokenizer
from weft_prompts.tokens.tokenizer import TextTooLong, Tokenizer

SHIPPED = Path(str(importlib.resources.files("weft_tiny"))) / "shipped" / "tokenizer.json"


def changed(**parts: Any) -> bytes:
    return json.dumps(json.loads(SHIPPED.read_text()) | parts).encode()


def replacing(plain: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": plain}, "content": content}


def cut_by(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def with_token(text: str) -> bytes:
    model = json.loads(SHIPPED.read_text())["model"]
    return changed(model=model | {"vocab": model["vocab"] | {text: len(model["vocab"])}})


def with_added(text: str) -> bytes:
    added = json.loads(SHIPPED.read_text())["added_tokens"]
    return changed(added_tokens=[*added, added[0] | {"content": text, "id": 2048}])


LONG = "a" * (bounds.MAX_TOKEN + 1)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"[]", "names no model"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"model": {"type": "Magic"}}', "names no model"),
        (changed(normalizer={"type": "Sequence", "normalizers": [replacing("a", "aa")] * 7}), "64 times longer"),
        (changed(normalizer={"type": "Sequence", "normalizers": [replacing("a", "b")] * 40}), "more than 32 parts"),
        (changed(pre_tokenizer=cut_by("(a+)+$")), "may never end"),
        (changed(normalizer={"type": "Replace", "pattern": {"Regex": "a*a*b"}, "content": ""}), "may never end"),
        (changed(pre_tokenizer={"type": "Sequence", "pretokenizers": [cut_by("(a|aa)+$")]}), "may never end"),
        (changed(model={"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}), "can't be loaded"),
        (with_token(LONG), "has a token of 4097 characters: 4096 are taken at most"),
        (with_added(LONG), "has a token of 4097 characters: 4096 are taken at most"),
        (changed(model={"type": "Unigram", "unk_id": 0, "vocab": [["a", 0.0], [LONG, 0.0]]}), "a token of 4097"),
    ],
)
def test_a_hostile_file_is_one_sentence(data: bytes, sentence: str):
    with pytest.raises(NoTokenizer, match=sentence) as refused:
        Tokenizer(data)
    assert "\n" not in str(refused.value)


def test_a_file_above_the_bounds_is_not_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounds, "MAX_BYTES", 1000)

    with pytest.raises(NoTokenizer, match=r"has \d+ bytes: 1000 are read at most"):
        Tokenizer(SHIPPED.read_bytes())


def test_padding_and_truncation_of_a_file_are_not_applied():
    padded = {"strategy": {"Fixed": 2**20}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
    file = changed(
        padding=padded | {"pad_type_id": 0, "pad_token": "!"},
        truncation={"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0},
    )

    assert Tokenizer(SHIPPED.read_bytes()).encode("Hello World") == Tokenizer(file).encode("Hello World")


def test_the_patterns_of_known_tokenizers_pass():
    for kind in PRE_KINDS.values():
        for pattern in kind.patterns:
            bounds.check_pattern(pattern)


def test_a_pattern_that_takes_too_long_gives_up_and_the_next_text_is_tokenized(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounds, "KNOWN_PATTERNS", {"(a+)+$"})
    slow = Tokenizer(changed(pre_tokenizer=cut_by("(a+)+$")))

    with pytest.raises(NoTokenizer, match="gave up on a text"):
        slow.encode("a" * 30 + "b")
    assert "aab" == slow.decode(slow.encode("aab"))


def test_a_text_longer_than_any_model_takes_is_refused(monkeypatch: pytest.MonkeyPatch):
    tiny = Tokenizer(SHIPPED.read_bytes())
    monkeypatch.setattr(tokenizer, "MAX_CHARACTERS", 10)

    with pytest.raises(TextTooLong, match="has 11 characters: 10 are tokenized at most"):
        tiny.encode("a" * 11)


def test_ids_that_are_no_tokens_are_refused():
    tiny = Tokenizer(SHIPPED.read_bytes())

    for each in (-1, 2048, 2**40):
        with pytest.raises(ValueError, match=f"{each} is no token of this model: it has 2048"):
            tiny.decode([each])
    assert "Hi" == tiny.decode([1, *tiny.encode("Hi")], special=False)


def test_half_a_pair_of_utf_16_is_tokenized_as_a_question_mark():
    tiny = Tokenizer(SHIPPED.read_bytes())

    assert tiny.encode("a?b") == tiny.encode("a\ud800b")


def test_a_process_that_forks_is_not_warned():
    code = f"""
import os, pathlib
from weft_prompts.tokens.tokenizer import Tokenizer
tiny = Tokenizer(pathlib.Path({str(SHIPPED)!r}).read_bytes())
ids = tiny.encode("hello")
child = os.fork()
if not child:
    os._exit(0 if tiny.encode("hello") == ids else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False, timeout=60)

    assert (0, b"") == (done.returncode, done.stderr)


def test_tokens_that_are_long_together_are_not_put_into_one_text():
    added = Tokenizer(with_added(LONG[1:]))
    ids = [2048] * (tokenizer.MAX_SPELLED // bounds.MAX_TOKEN)

    assert tokenizer.MAX_SPELLED == len(added.decode(ids)) == sum(map(len, added.pieces(ids)))
    for asked in (added.decode, added.pieces):
        with pytest.raises(TextTooLong, match="the 2049 tokens have more than 8388608 characters together"):
            asked([*ids, 1])


def test_no_more_tokens_are_looked_at_than_fit_a_text(monkeypatch: pytest.MonkeyPatch):
    tiny = Tokenizer(SHIPPED.read_bytes())
    looked_at: list[int] = []
    piece = tiny._piece  # pyright: ignore[reportPrivateUsage]

    def noted(id: int) -> str:
        looked_at.append(id)
        return piece(id)

    monkeypatch.setattr(tiny, "_piece", noted)
    with pytest.raises(TextTooLong):
        tiny.decode([1] * 1000, most=100)

    assert 100 // len("<|im_start|>") + 1 == len(looked_at)


def test_what_a_decoder_adds_to_a_text_counts():
    grows = Tokenizer(changed(decoder={"type": "Sequence", "decoders": [replacing("a", "b" * 50), {"type": "Fuse"}]}))
    ids = [*grows.encode("a")] * 10

    most = 50 * sum(map(len, grows.pieces(ids)))

    assert 500 <= len(grows.decode(ids, most=most)) <= most
    with pytest.raises(TextTooLong):
        grows.decode(ids, most=most - 50)
