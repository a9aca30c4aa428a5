"""What llguidance keeps, and what happens where llama.cpp goes on without it, which it says in its log alone."""

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending

pytest.importorskip("llguidance")

from weft_engine.adapters.llamacpp_job import Job
from weft_engine.adapters.llamacpp_native import NativeServer
from weft_engine.adapters.llamacpp_tokenizer import LlamaCppTokenizer
from weft_engine.guided_grammar import GrammarMatcher, is_guided
from weft_engine.json_grammar import grammar_of

SCHEMA = json.dumps({"type": "string", "pattern": "^a{2,3}$"})


class Server:
    """Says what a test tells it, whatever it was asked to keep."""

    def __init__(self, said: Sequence[str], finish: str) -> None:
        self._said, self._finish = said, finish

    def complete(self, request: str, on_chunk: Callable[[str], bool]) -> None:
        assert is_guided(json.loads(request)["grammar"])
        for number, text in enumerate(self._said, start=1):
            choice: dict[str, Any] = {"text": text, "finish_reason": None, "logprobs": None}
            more = {"tokens": [number], "tokens_predicted": number, "tokens_evaluated": 3}
            if on_chunk(json.dumps({"choices": [choice], "__verbose": more})):
                return
        usage = {
            "prompt_tokens": 3,
            "completion_tokens": len(self._said),
            "prompt_tokens_details": {"cached_tokens": 0},
        }
        on_chunk(json.dumps({"choices": [{"finish_reason": self._finish}], "usage": usage}))


def ended(said: Sequence[str], finish: str = "stop") -> tuple[Ending, str]:
    request = pb.Submit(text="x", constraint=pb.Constraint(json_schema=SCHEMA))
    job = Job(request, pb.Prompt(text="x"), cast(Any, None))
    text: list[str] = []

    def post(job: Job, piece: str, *_: object) -> None:
        text.append(piece)

    class Text:
        def prompt(self, prompt: pb.Prompt, resumed: list[int]) -> str:
            return "x"

    ending = job.run(cast(NativeServer, Server(said, finish)), cast(LlamaCppTokenizer, Text()), cast(Any, post))
    return ending, "".join(text)


def test_an_answer_that_leaves_its_pattern_or_ends_within_it_is_a_failure_and_no_answer() -> None:
    assert (pb.FINISH_STOP, '"aaa"') == (ended(['"a', "aa", '"'])[0].finish, ended(['"a', "aa", '"'])[1])
    assert pb.FINISH_LENGTH == ended(['"a', "a"], "length")[0].finish
    for said in (['"a', "b"], ['"a', "a"], ["hello"], []):
        ending, text = ended(said)
        assert (pb.FINISH_ERROR, pb.FAULT_ENGINE) == (ending.finish, ending.fault)
        assert "left the JSON schema" in ending.error
        assert "b" not in text


def test_a_pattern_is_kept_in_several_lines_beside_text_and_beside_another_schema() -> None:
    other = json.dumps({"const": [1]})
    call = json.dumps({"type": "object", "properties": {"a": {"pattern": "^b+$"}}, "required": ["a"]})
    grammar, one = grammar_of(call, or_text=True, most=2, or_json=other), '{"a": "bb"}'
    cases = [(one, True), (f"{one}\n{one}", True), (f"{one}\n{one}\n{one}", False), ('{"a": "c"}', False)]
    for text, fits in [*cases, ("text {", True), ("", True), (" text", False), ("[1]", True)]:
        matcher = GrammarMatcher(grammar)
        assert fits == (matcher.takes(text) and matcher.whole), text
    assert not is_guided(grammar_of(other, or_text=False))
    # what the caller's schema says of the library's own options is not heeded
    lenient = json.dumps(json.loads(SCHEMA) | {"x-guidance": {"lenient": True, "whitespace_flexible": True}})
    assert grammar_of(SCHEMA, or_text=False) == grammar_of(lenient, or_text=False)


@pytest.mark.parametrize(
    ("pattern", "text", "kept"),
    [
        ("(.*a.*b.*c.*d.*e.*)*", "abcde" * 60, True),
        ("|".join(f"x{i}" for i in range(2000)), "x1999", True),
        ("((a{1,100}){1,100}){1,100}", "a" * 300, False),
    ],
    ids=range(3),
)
def test_a_pattern_that_is_too_much_is_given_up_within_bounds_and_never_answered(
    pattern: str, text: str, kept: bool
) -> None:
    matcher = GrammarMatcher(grammar_of(json.dumps({"type": "string", "pattern": f"^({pattern})$"}), or_text=False))
    assert kept == matcher.takes(f'"{text}"')
