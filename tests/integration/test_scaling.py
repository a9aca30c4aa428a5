"""How many replicas a model has by what there is to do: none until a request comes, more under load, fewer after it."""

import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from weft_contracts.facts.model import Sized
from weft_contracts.ids import ModelId
from weft_reconciler.domain.resize import Resize
from weft_reconciler.domain.sizing import computed_again
from weft_reconciler.domain.state import State
from weft_testing.log_pages import recorded
from weft_testing.machine import done
from weft_testing.story import MeshUnderTest, until

QUICKLY: dict[str, Any] = {
    "WEFT_SCALE_UP_AFTER": "2",
    "WEFT_SCALE_UP_COOLDOWN": "2",
    "WEFT_SCALE_DOWN_AFTER": "6",
    "WEFT_SCALE_DOWN_COOLDOWN": "2",
    "WEFT_LOADING_WAIT_S": "20",
}


@pytest.fixture(scope="module", name="mesh")
def a_mesh_that_sizes_quickly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    with MeshUnderTest(tmp_path_factory.mktemp("sizes"), **QUICKLY) as mesh:
        yield mesh


def sizes(mesh: MeshUnderTest, model: str) -> list[tuple[int, int]]:
    return [(each["was"], each["replicas"]) for each in sized(mesh, model)]


def sized(mesh: MeshUnderTest, model: str) -> list[dict[str, Any]]:
    id = mesh.http.get(f"{mesh.url}/api/models/{model}").json()["id"]
    return [each["fact"] for each in mesh.facts("model", "sized") if each["key"] == id]


def computed_from_the_log(mesh: MeshUnderTest, name: str) -> Counter[str]:
    """Every size of a model, computed again from its receipt and the log up to its position; how many of each kind."""
    id = ModelId(mesh.http.get(f"{mesh.url}/api/models/{name}").json()["id"])
    commits = [recorded(event) for event in mesh.events()]
    found = Counter[str]()
    for commit in commits:
        for fact in commit.facts if commit.aggregate.key == id else ():
            if isinstance(fact, Sized):
                state = State()
                state.fold([each for each in commits if each.sequence <= fact.receipt.position])
                model = state.fleet.models[id]
                assert Resize(fact.replicas, fact.places, fact.why) == computed_again(state, model, fact.receipt)
                found["up" if fact.replicas > fact.was else "down"] += 1
    return found


@pytest.mark.slow
@pytest.mark.sabotage("nobody-wakes")
def test_a_model_without_replicas_is_woken_by_a_request_that_waits_and_goes_to_sleep_again(mesh: MeshUnderTest) -> None:
    # given a model that takes two seconds to load, of which none is to run until it is asked
    words = ("--name", "sleepy", "--min", "0", "--max", "2", "--engine-arg", "load_seconds=2")
    done(mesh, "deploy", "simulated", *words)
    shown = mesh.http.get(f"{mesh.url}/api/models/sleepy").json()
    assert ("empty", 0, None) == (shown["state"], shown["wanted"], shown["size"])

    # when several ask at once: then each is answered, by the one replica that was started for them
    with asking(mesh, "sleepy", 3, max_tokens=4, once=True) as answers:
        until("all are answered", lambda: len(answers) == 3, 40)
    assert {200} == {answer.status_code for answer in answers}
    assert [(0, 1)] == sizes(mesh, "sleepy")
    assert len(mesh.facts("request", "activation_requested")) < 3, "one asks for all that wait, again after a while"

    # when nobody asks any more: then it goes, and says why
    until("it sleeps", lambda: not [r for r in mesh.replicas() if r["model_name"] == "sleepy"], 40)
    assert [(0, 1), (1, 0)] == sizes(mesh, "sleepy")
    shown = mesh.http.get(f"{mesh.url}/api/models/sleepy").json()
    assert ("empty", 0, 0) == (shown["state"], shown["wanted"], shown["size"]["replicas"])
    assert shown["reason"].startswith("it sleeps until it is asked: nothing ran or waited for ")

    # and the next request wakes it again
    assert 200 == mesh.chat("Hello", "sleepy", max_tokens=4).status_code
    assert [(0, 1), (1, 0), (0, 1)] == sizes(mesh, "sleepy")
    found = computed_from_the_log(mesh, "sleepy")
    print(f"sizes computed again from the log: {dict(found)}")
    assert min(found["up"], found["down"]) > 0


@pytest.mark.slow
@pytest.mark.sabotage("no-room-to-spare")
def test_a_model_grows_under_load_and_shrinks_after_it_with_no_more_changes_than_the_load_asks_for(
    mesh: MeshUnderTest,
) -> None:
    # given a model of one replica that runs two requests at once, and may have three
    spec = {"source": {"kind": "simulated"}, "engine": "simulated", "engine_args": {"ms_per_token": 50}}
    mesh.deploy("busy", {**spec, "concurrency": 2, "min_replicas": 1, "max_replicas": 3}).raise_for_status()
    until("it answers", lambda: len(mesh.ready_replicas("busy")) == 1)

    # when three ask all the time: then there is one more, in which all have room, and no third
    with asking(mesh, "busy", 3, max_tokens=20, ignore_eos=True) as answers:
        until("there are two", lambda: len(mesh.ready_replicas("busy")) == 2, 40)
        time.sleep(12)  # as long as it takes to find one fewer enough, and its cooldown
        assert [(1, 2)] == sizes(mesh, "busy")
    # when they leave: then there is one again, and no request was harmed
    until("there is one", lambda: len(mesh.ready_replicas("busy")) == 1, 40)
    time.sleep(5)
    assert [(1, 2), (2, 1)] == sizes(mesh, "busy")
    assert {200} == {answer.status_code for answer in answers}
    assert len(answers) > 10

    # and why it did is in the log, for whoever computes it again
    whys = [fact["why"] for fact in sized(mesh, "busy")]
    assert whys[0].startswith("all were busy for ")
    found = computed_from_the_log(mesh, "busy")
    print(f"sizes computed again from the log: {dict(found)}")
    assert {"up": 1, "down": 1} == found


@contextmanager
def asking(
    mesh: MeshUnderTest, model: str, clients: int, *, once: bool = False, **fields: Any
) -> Generator[list[httpx.Response]]:
    """Clients that ask one after the other until the block ends, or one time; their answers as they come."""
    answers: list[httpx.Response] = []
    ended = threading.Event()

    def client() -> None:
        while True:
            answers.append(mesh.chat("Hello", model, **fields))
            if once or ended.is_set():
                return

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)
