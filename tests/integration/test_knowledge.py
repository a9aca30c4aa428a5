"""What the built-in model knows comes through HTTP, alone and ten at once."""

import json
import random
from contextlib import ExitStack, closing
from http.client import HTTPConnection

import pytest
from weft_testing.story import MeshUnderTest
from weft_tiny import folder

PROMPTS = [
    "What is the capital of France?",
    "capital of Peru",
    "Hello",
    "Who are you?",
    "Tell me a story.",
    "What is 3 plus 4?",
    "What is the chemical symbol for gold?",
    "What is the capital of the land of Zorbulania, if there is such a place at all?",
    "Please tell me what the capital of Kenya is.",
    "Thanks",
]


@pytest.mark.sabotage("hot-sampling")
def test_twenty_facts_in_three_phrasings_are_answered_right_at_least_ninety_five_times_of_a_hundred(
    calm_mesh: MeshUnderTest,
) -> None:
    facts = json.loads((folder() / "facts.json").read_text())
    drawn = random.Random(8).sample(facts["questions"], 20)
    phrasings = facts["held_out"][:3]
    right = sum(
        row["capital"] in calm_mesh.ask(phrasing.replace("{x}", row["country"]))
        for row in drawn
        for phrasing in phrasings
    )
    assert right >= 0.95 * 60


@pytest.mark.sabotage("swapped-streams")
def test_ten_prompts_streamed_at_once_give_the_same_text_as_one_by_one(calm_mesh: MeshUnderTest) -> None:
    # given each one's answer, and a connection that is open for each
    one_by_one = [calm_mesh.ask(prompt) for prompt in PROMPTS]
    with ExitStack() as open_ones:
        connections = [open_ones.enter_context(closing(connected(calm_mesh.url))) for _ in PROMPTS]
        # when all are sent before any answer is read: what is sent as it is connected is answered in turn
        for connection, prompt in zip(connections, PROMPTS, strict=True):
            ask_for_a_stream(connection, prompt)
        at_once = [streamed(connection) for connection in connections]
    # then nobody has got anything of another's
    assert one_by_one == at_once


def connected(url: str) -> HTTPConnection:
    connection = HTTPConnection(url.removeprefix("http://"), timeout=90)
    connection.connect()
    return connection


def ask_for_a_stream(connection: HTTPConnection, prompt: str) -> None:
    body = {"model": "tiny", "temperature": 0, "stream": True, "messages": [{"role": "user", "content": prompt}]}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})


def streamed(connection: HTTPConnection) -> str:
    text = ""
    for line in connection.getresponse().read().decode().splitlines():
        if line.startswith("data: {"):
            choices = json.loads(line[6:])["choices"]
            text += (choices[0]["delta"].get("content") or "") if choices else ""
    return text
