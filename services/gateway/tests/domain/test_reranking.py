"""Rerank bodies and answers: what is given is honoured or refused by name, and the best comes first."""

import json
from typing import Any

import pytest
from weft_contracts.engines import BUILTIN
from weft_contracts.engines.profile import Task
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_gateway.domain.ability import check_reranks
from weft_gateway.domain.openai.reranking import check_rerank, rerank_answer
from weft_gateway.domain.refused import Refused


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "query": "q", "documents": ["a", {"text": "b"}, "c"], **fields}).encode()


def test_documents_are_texts_or_objects_with_one() -> None:
    assert ["a", "b", "c"] == check_rerank(body()).documents


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"query": ""}, "query"),
        ({"query": 1}, "query"),
        ({"documents": []}, "documents"),
        ({"documents": ["a", ""]}, "documents"),
        ({"documents": [{"title": "a"}]}, "title"),
        ({"documents": ["a"] * 1001}, "documents"),
        ({"top_n": 0}, "top_n"),
        ({"max_tokens_per_doc": 5}, "max_tokens_per_doc"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(Refused) as refused:
        check_rerank(body(**fields))
    assert 400 == refused.value.status
    assert param in str(refused.value.param)


def test_the_best_come_first_and_equal_ones_as_they_were_given() -> None:
    answer = json.loads(rerank_answer(check_rerank(body()), [0.5, 2.0, 0.5], 7))
    assert [(1, 2.0, "b"), (0, 0.5, "a"), (2, 0.5, "c")] == [
        (each["index"], each["relevance_score"], each["document"]["text"]) for each in answer["results"]
    ]
    assert ("list", "m", {"prompt_tokens": 7, "total_tokens": 7}) == (
        answer["object"],
        answer["model"],
        answer["usage"],
    )


def test_so_many_as_are_wanted_and_without_their_texts() -> None:
    asked = check_rerank(body(top_n=2, return_documents=False))
    answer = json.loads(rerank_answer(asked, [0.1, 0.2, 0.3], 1))
    assert [{"index": 2, "relevance_score": 0.3}, {"index": 1, "relevance_score": 0.2}] == answer["results"]


@pytest.mark.parametrize(
    ("serves", "embeds", "may"),
    [
        (("chat", "embeddings", "rerank"), True, True),
        (("chat", "embeddings", "rerank"), False, False),
        (("rerank",), False, True),
        (("chat", "embeddings"), True, False),
        (None, True, False),
    ],
)
def test_only_a_model_whose_engine_reranks_and_that_does_not_write_is_asked(
    serves: tuple[Task, ...] | None, embeds: bool, may: bool
) -> None:
    spec = ModelSpec(source=SimulatedSource(), engine="own", weights=Weights(format="none", embeds=embeds))
    profile = None if serves is None else BUILTIN["simulated"].model_copy(update={"name": "own", "serves": serves})
    try:
        check_reranks("m", spec, profile)
        refused = None
    except Refused as raised:
        refused = raised.code
    assert (None if may else "model_does_not_rerank") == refused
