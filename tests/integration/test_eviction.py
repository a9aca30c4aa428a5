"""A mesh with room for one of two models: what is idle makes room for what is asked for, and what is in use doesn't."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from weft_testing.log_pages import recorded
from weft_testing.machine import done
from weft_testing.story import MeshUnderTest, until

SETTINGS: dict[str, Any] = {
    "WEFT_EVICT_IDLE_S": "4",
    "WEFT_EVICT_SETTLED_S": "2",
    "WEFT_EVICT_TURN_S": "1",
    "WEFT_LOADING_WAIT_S": "20",
}
TAKES_MOST = f"memory_bytes={3 << 30}"


@pytest.fixture(scope="module", name="mesh")
def a_mesh_with_room_for_one_of_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    with MeshUnderTest(tmp_path_factory.mktemp("eviction"), **SETTINGS) as mesh:
        done(mesh, "nodes", "vram-budget", "worker-1", "4GiB")
        for name in ("one", "two"):
            words = ("--name", name, "--min", "0", "--max", "1", "--engine-arg", TAKES_MOST)
            done(mesh, "deploy", "simulated", *words, "--engine-arg", "ms_per_token=50")
        yield mesh


def evicted(mesh: MeshUnderTest) -> list[str]:
    return [each["key"] for each in mesh.facts("replica", "evicted")]


def serving(mesh: MeshUnderTest, model: str) -> list[str]:
    return [each["id"] for each in mesh.ready_replicas(model)]


@pytest.mark.slow
@pytest.mark.sabotage("nobody-makes-room")
def test_an_idle_model_makes_room_for_a_request_of_another(mesh: MeshUnderTest) -> None:
    # given one that was asked, serves still, and leaves no room
    assert 200 == mesh.chat("Hello", "one", max_tokens=2).status_code
    (first,) = serving(mesh, "one")
    assert [] == evicted(mesh)

    # when the other is asked: then its request waits until the first is idle and gone, and is answered
    assert 200 == mesh.chat("Hello", "two", max_tokens=2).status_code
    assert [first] == evicted(mesh)
    assert [] == serving(mesh, "one")
    (second,) = serving(mesh, "two")

    # and the log says what was read for it, for what, and how long it had been idle
    (fact,) = (each["fact"] for each in mesh.facts("replica", "evicted"))
    assert second == fact["waiting"]
    use = next(each for each in fact["receipt"]["read"]["uses"] if each.get("gateways"))
    assert use["known"]
    assert use["idle_s"] >= 4
    assert f"made room for {second} of two" in done(mesh, "explain", first)
    # nobody starts the first again, for which nobody asks
    shown = mesh.http.get(f"{mesh.url}/api/models/one").json()
    assert ("empty", 0) == (shown["state"], shown["wanted"])


@pytest.mark.slow
@pytest.mark.sabotage("busy-is-idle")
def test_a_model_in_use_makes_no_room_and_who_waits_is_told_why(mesh: MeshUnderTest) -> None:
    # given one that answers for longer than anybody waits
    answers: list[httpx.Response] = []
    assert 200 == mesh.chat("Hello", "one", max_tokens=2).status_code
    (busy,) = serving(mesh, "one")
    before = evicted(mesh)

    def ask() -> None:
        answers.append(mesh.chat("Hello", "one", max_tokens=600, ignore_eos=True))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        # when the other is asked: then its request waits for as long as for any model that loads, and is told why
        refused = mesh.chat("Hello", "two", max_tokens=2)
        assert 503 == refused.status_code
        told = refused.json()["error"]
        assert "not_ready" == told["code"]
        assert f"ending {busy} of one on " in told["message"]
        assert "would make room, but that was used less than 4 s ago" in told["message"]
        assert before == evicted(mesh)
    finally:
        asking.join(90)
    # and once the first is idle, the other has its place
    assert [200] == [answer.status_code for answer in answers]
    until("the other serves", lambda: serving(mesh, "two"), 40)
    assert [*before, busy] == evicted(mesh)
    kinds = {fact.type for event in mesh.events() for fact in recorded(event).facts}
    assert {"evicted", "unplaceable", "placed"} <= kinds
