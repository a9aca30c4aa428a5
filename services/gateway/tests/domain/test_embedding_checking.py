"""Embedding bodies: every field of OpenAI's schema is honoured or refused, and answers carry the exact numbers."""

import base64
import json
from typing import Any

import pytest
from openai.types.embedding_create_params import EmbeddingCreateParams
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_dataplane import packed, unpacked
from weft_gateway.domain.ability import ability_of, check_embeds, check_writes
from weft_gateway.domain.openai.embeddings import EmbeddingBody, check_embedding, check_length, embedding_answer
from weft_gateway.domain.refused import Refused


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "input": "x", **fields}).encode()


def test_every_field_that_openai_documents_is_known() -> None:
    assert set(EmbeddingCreateParams.__annotations__) == set(EmbeddingBody.__struct_fields__)


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ("a", ("a",)),
        (["a", "b"], ("a", "b")),
        ([1, 2], ([1, 2],)),
        ([[1, 2], [3]], ([1, 2], [3])),
    ],
)
def test_inputs_are_taken_in_all_four_forms(given: Any, inputs: Any) -> None:
    assert inputs == check_embedding(body(input=given)).inputs


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"input": []}, "input"),
    ({"input": [[]]}, "input"),
    ({"input": ["a", [1]]}, "input"),
    ({"input": [1, [1]]}, "input"),
    ({"input": [2**32]}, "input"),
    ({"input": {"a": 1}}, "input"),
    ({"dimensions": 0}, "dimensions"),
    ({"dimensions": "many"}, "dimensions"),
    ({"encoding_format": "int8"}, "encoding_format"),
    ({"other": 1}, "other"),
]


@pytest.mark.parametrize(("fields", "param"), WRONG)
def test_what_cannot_be_meant_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(Refused) as refused:
        check_embedding(body(**fields))
    assert (400, param) == (refused.value.status, refused.value.param)


def test_answers_carry_the_same_numbers_either_way() -> None:
    vector = packed([0.25, -1.5, 1e-7])
    floats = json.loads(b"".join(embedding_answer(check_embedding(body()), [vector], 3)))
    coded = json.loads(b"".join(embedding_answer(check_embedding(body(encoding_format="base64")), [vector], 3)))
    assert list(unpacked(vector)) == floats["data"][0]["embedding"]
    assert vector == base64.b64decode(coded["data"][0]["embedding"])
    assert {"prompt_tokens": 3, "total_tokens": 3} == floats["usage"]


def test_a_large_answer_is_written_in_pieces_that_make_one_body() -> None:
    vectors = [packed([float(index)] * 4096) for index in range(40)]
    pieces = list(embedding_answer(check_embedding(body(input=["x"] * 40)), vectors, 40))
    whole = json.loads(b"".join(pieces))
    assert 11 == len(pieces)
    assert [[float(index)] * 4096 for index in range(40)] == [row["embedding"] for row in whole["data"]]
    assert list(range(40)) == [row["index"] for row in whole["data"]]
    assert ("list", "m") == (whole["object"], whole["model"])


def test_dimensions_are_taken_if_they_are_the_models_own() -> None:
    vector = packed([1.0, 2.0])
    assert embedding_answer(check_embedding(body(dimensions=2)), [vector], 1)
    with pytest.raises(Refused, match="2 numbers"):
        embedding_answer(check_embedding(body(dimensions=1)), [vector], 1)


def test_more_token_ids_than_the_context_are_refused() -> None:
    with pytest.raises(Refused, match="at most 2"):
        check_length(check_embedding(body(input=[[1], [1, 2, 3]])), 2)


@pytest.mark.parametrize(
    ("told", "header", "ability"),
    [(None, False, "text"), (None, True, "embeddings"), (True, False, "embeddings"), (False, True, "text")],
)
def test_the_spec_says_what_a_model_can_and_else_its_header(told: bool | None, header: bool, ability: str) -> None:
    spec = ModelSpec(
        source=SimulatedSource(),
        engine="simulated",
        engine_args={} if told is None else {"embeddings": told},
        weights=Weights(format="none", embeds=header),
    )
    assert ability == ability_of(spec)
    wrong = check_writes if ability == "embeddings" else check_embeds
    with pytest.raises(Refused, match="'m'"):
        wrong("m", spec)
