"""Prepared templates give the same JSON as a library would."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from weft_gateway.domain.answers.broken import broken
from weft_gateway.domain.answers.chat import ChatForm
from weft_gateway.domain.answers.completions import CompletionForm
from weft_gateway.domain.answers.form import Usage
from weft_gateway.domain.refused import Refused

NASTY = 'a "quoted" \\ name\n'


def events(data: bytes) -> list[Any]:
    parts = [part.removeprefix("data: ") for part in data.decode().split("\n\n") if part]
    return [part if part == "[DONE]" else json.loads(part) for part in parts]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_and_any_name_make_a_valid_event(text: str) -> None:
    import msgspec

    for make in (ChatForm, CompletionForm):
        form = make("id-1", 7, NASTY, "d", True)
        [event] = events(form.before + msgspec.json.encode(text) + form.after)
        [choice] = event["choices"]
        assert text == (choice["delta"]["content"] if make is ChatForm else choice["text"])
        assert (NASTY, "id-1", 7, None) == (event["model"], event["id"], event["created"], event["usage"])
        whole = json.loads(form.whole(text, "stop", Usage(1, 2)))
        assert 3 == whole["usage"]["total_tokens"]


def test_a_stream_ends_with_reason_usage_and_done() -> None:
    for make in (ChatForm, CompletionForm):
        *_, reason, usage, done = events(make("i", 1, "m", "d", True).closing("length", Usage(1, 2, 1)))
        assert "length" == reason["choices"][0]["finish_reason"]
        assert ([], 2) == (usage["choices"], usage["usage"]["completion_tokens"])
        assert "[DONE]" == done
        assert 2 == len(events(make("i", 1, "m", "d", False).closing("stop", Usage(1, 2))))


def test_a_broken_stream_says_so() -> None:
    error, done = events(broken(Refused(503, "gone", code="x")))
    assert {"error": {"message": "gone", "type": "server_error", "param": None, "code": "x"}} == error
    assert "[DONE]" == done
