"""The built-in embedder through the official client: right neighbours, equal in batches, and clear errors."""

import json
import math
import random
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from weft_testing.story import MeshUnderTest
from weft_tiny import folder

pytestmark = pytest.mark.slow

MODEL = "tiny-embed"


@pytest.fixture(scope="module")
def embedding_mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh with both built-in models, the embedder deployed as a user would."""
    with MeshUnderTest(tmp_path_factory.mktemp("embedding")) as mesh:
        deployed = mesh.weft("deploy", MODEL, timeout=120)
        assert 0 == deployed.returncode, deployed.stderr
        yield mesh


@pytest.fixture
def client(embedding_mesh: MeshUnderTest) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{embedding_mesh.url}/v1", api_key="none", max_retries=0, timeout=30) as client:
        yield client


def vectors(client: openai.OpenAI, texts: list[str], **more: Any) -> list[list[float]]:
    return [each.embedding for each in client.embeddings.create(model=MODEL, input=texts, **more).data]


def dot(one: list[float], other: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.sabotage("shuffled-vectors")
def test_questions_in_phrasings_never_trained_find_their_answers(client: openai.OpenAI) -> None:
    # given every capital's sentence, and forty questions in held-out phrasings
    facts = json.loads((folder() / "facts.json").read_text())
    rows = facts["questions"]
    answers = vectors(client, [f"The capital of {row['country']} is {row['capital']}." for row in rows])
    drawn = random.Random(9)
    asked = drawn.sample(range(len(rows)), 40)
    questions = [drawn.choice(facts["held_out"]).replace("{x}", rows[place]["country"]) for place in asked]
    # when each looks for its nearest sentence
    found = [
        max(range(len(answers)), key=lambda place: dot(question, answers[place]))
        for question in vectors(client, questions)
    ]
    # then it is the right one
    right = sum(a == b for a, b in zip(asked, found, strict=True))
    assert right >= 38, [(questions[i], rows[found[i]]) for i in range(40) if asked[i] != found[i]]


@pytest.mark.sabotage("shuffled-vectors")
def test_a_batch_gives_the_vectors_of_its_singles_and_counts_every_token(client: openai.OpenAI) -> None:
    texts = ["What is the capital of France?", "gold", "Hello " * 60, "What is the capital of Peru?"] * 20
    batch = client.embeddings.create(model=MODEL, input=texts)
    singles = [client.embeddings.create(model=MODEL, input=text) for text in texts[:4]] * 20
    assert list(range(80)) == [each.index for each in batch.data]
    for together, alone in zip(batch.data, singles, strict=True):
        assert dot(together.embedding, alone.data[0].embedding) > 0.99999
    assert sum(single.usage.prompt_tokens for single in singles) == batch.usage.prompt_tokens
    assert batch.usage.prompt_tokens == batch.usage.total_tokens


@pytest.mark.sabotage("shuffled-vectors")
def test_floats_and_base64_are_the_same_numbers_and_token_ids_are_taken(client: openai.OpenAI) -> None:
    (by_default,) = vectors(client, ["Hello"])
    (as_floats,) = vectors(client, ["Hello"], encoding_format="float", dimensions=128, user="someone")
    assert by_default == as_floats
    assert 128 == len(as_floats)
    assert abs(dot(as_floats, as_floats) - 1) < 1e-5
    one = client.embeddings.create(model=MODEL, input=[7, 8, 9])
    both = client.embeddings.create(model=MODEL, input=[[7, 8, 9], [10, 11]])
    assert dot(one.data[0].embedding, both.data[0].embedding) > 0.99999
    assert (3, 5) == (one.usage.prompt_tokens, both.usage.prompt_tokens)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"input": "x", "model": "gpt-9"}, 404, "tiny-embed"),
        ({"input": "x", "model": "tiny"}, 400, "makes no embeddings"),
        ({"input": ""}, 400, "`input` is empty"),
        ({"input": []}, 400, "`input` is empty"),
        ({"input": ["a", ""]}, 400, "`input[1]` is empty"),
        ({"input": ["a", 1]}, 400, "mixes"),
        ({"input": [-1]}, 400, "0 or more"),
        ({"input": [99999999]}, 400, "token id 99999999"),
        ({"input": ["a"] * 2049}, 400, "at most 2048"),
        ({"input": "word " * 3000}, 400, "at most 1024"),
        ({"input": "x", "dimensions": 64}, 400, "128"),
        ({"input": "x", "encoding_format": "int8"}, 400, "float or base64"),
        pytest.param(
            {"input": "x", "frobnicate": 1}, 400, "frobnicate", marks=pytest.mark.sabotage("silent-embedding-fields")
        ),
        ({}, 400, "`input` is missing"),
    ],
)
def test_a_bad_request_gets_openais_error_with_one_sentence(
    embedding_mesh: MeshUnderTest, body: dict[str, Any], status: int, says: str
) -> None:
    response = embedding_mesh.http.post(f"{embedding_mesh.url}/v1/embeddings", json={"model": MODEL, **body})
    assert status == response.status_code, response.text
    assert says in response.json()["error"]["message"]


@pytest.mark.sabotage("any-ability")
def test_a_chat_asked_of_the_embedder_is_sent_to_the_right_route(embedding_mesh: MeshUnderTest) -> None:
    response = embedding_mesh.chat("Hello", model=MODEL)
    assert 400 == response.status_code
    assert "/v1/embeddings" in response.json()["error"]["message"]
    found = embedding_mesh.http.get(f"{embedding_mesh.url}/v1/models/{MODEL}").json()
    assert "embeddings" == found["weft"]["ability"]
    assert "/v1/embeddings" in embedding_mesh.http.get(f"{embedding_mesh.url}/openapi.json").json()["paths"]
