"""What goes wrong with a model is said: in `status`, in the events, to the client that waits. And nothing loops."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from weft_testing.story import MeshUnderTest, until

from . import own_gguf
from .cramped_worker import CrampedWorker, can_mount

SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh that gives up a load after some seconds."""
    with MeshUnderTest(tmp_path_factory.mktemp("failures"), WEFT_LOAD_DEADLINE="8") as mesh:
        yield mesh


@pytest.mark.sabotage("permanent-retried")
def test_a_failure_for_good_is_told_in_the_engines_words_and_not_tried_again(mesh: MeshUnderTest) -> None:
    for_good = ("--engine-arg", "fail_load=it can't frobnicate", "--engine-arg", "fail_load_permanent=true")
    deployed = mesh.weft("deploy", "simulated", "--name", "odd", *for_good)

    assert 1 == deployed.returncode
    assert "frobnicate" in deployed.stderr
    shown_everywhere(mesh, "odd", "frobnicate", starts=1)


@pytest.mark.sabotage("mute-start")
def test_a_file_that_is_cut_short_under_a_model_is_told_when_it_is_next_loaded(
    mesh: MeshUnderTest, tmp_path: Path
) -> None:
    # given a model that answers
    file = own_gguf.write(tmp_path / "cut.gguf")
    assert 0 == mesh.weft("deploy", str(file)).returncode
    # when its file is replaced by a part of it, and its engine ends
    own_gguf.truncate(own_gguf.write(file))
    (replica,) = mesh.ready_replicas("cut")
    kill_host(mesh, replica["id"])
    # then the reason is everywhere, after one look
    shown_everywhere(mesh, "cut", "cut.gguf is truncated: 1000000 of")
    # and deploying that file is refused with the same words
    deployed = mesh.weft("deploy", str(file), "--name", "short")
    assert 1 == deployed.returncode
    assert "cut.gguf is truncated: 1000000 of" in deployed.stderr


@pytest.mark.sabotage("no-deadline")
def test_an_engine_that_does_not_get_ready_is_ended_at_its_deadline_and_that_is_the_reason(
    mesh: MeshUnderTest,
) -> None:
    mesh.deploy("sleepy", {**SIMULATED, "engine_args": {"load_seconds": 600}}).raise_for_status()

    shown_everywhere(mesh, "sleepy", "was not ready within", starts=1)
    until("its engine is gone", lambda: not [h for h in mesh.hosts() if "sleepy" in " ".join(h.cmdline())])


@pytest.mark.sabotage("failed-revision-rules")
@pytest.mark.parametrize("trouble", ["killed", pytest.param("stopped and started", marks=pytest.mark.slow)])
def test_a_revision_that_fails_takes_nothing_from_the_one_before(mesh: MeshUnderTest, trouble: str) -> None:
    # given a model with two replicas, and a new revision of it that can't be served
    name = f"kept-{trouble.replace(' ', '-')}"
    first = before_a_failed_revision(mesh, name)
    # when what serves dies, or all is stopped and started
    if trouble == "killed":
        victim = min(first)
        assert kill_host(mesh, victim)
        until("it was seen to end", lambda: victim not in ready(mesh, name))
    else:
        mesh.down()
        mesh.up()
    # then revision 1 has its two replicas again, which answer
    until("two answer again", lambda: 2 == len(mesh.ready_replicas(name)), 60)
    assert first == ready(mesh, name)
    the_one_before_serves(mesh, name)


@pytest.mark.slow
@pytest.mark.sabotage("failed-revision-rules")
def test_what_dies_for_good_beside_a_failed_revision_is_replaced_by_its_own(tmp_path: Path) -> None:
    with MeshUnderTest(tmp_path, workers=2) as mesh:
        # given a model with a replica on each of two workers, and a new revision of it that can't be served
        first = before_a_failed_revision(mesh, "kept")
        # when one of them is killed until it is given up
        victim = min(first)

        def given_up() -> bool:
            kill_host(mesh, victim)
            return failed_run(mesh, victim)

        until("it is given up", given_up, 60)
        until("it no longer counts as ready", lambda: victim not in ready(mesh, "kept"))
        # then another one of its own revision is in its place
        until("two answer again", lambda: 2 == len(ready(mesh, "kept")), 60)
        assert first - {victim} == first & ready(mesh, "kept")
        the_one_before_serves(mesh, "kept")


def ready(mesh: MeshUnderTest, name: str) -> set[str]:
    """The ids of a model's replicas that answer."""
    return {replica["id"] for replica in mesh.ready_replicas(name)}


def before_a_failed_revision(mesh: MeshUnderTest, name: str) -> set[str]:
    """Deploy a model with two replicas, and a revision of it that fails; the replicas of the first."""
    assert 0 == mesh.weft("deploy", "tiny", "--name", name, "--replicas", "2").returncode
    wrong = ("--engine-arg", "chat_template={% frobnicate")  # which only the engine can know
    deployed = mesh.weft("deploy", "tiny", "--name", name, "--replicas", "2", *wrong)
    assert 1 == deployed.returncode
    assert f"revision 2 of {name} can't be served: " in deployed.stderr
    assert "; revision 1 goes on" in deployed.stderr
    first = ready(mesh, name)
    assert 2 == len(first)
    return first


def the_one_before_serves(mesh: MeshUnderTest, name: str) -> None:
    """Revision 1 answers, and people see which revision serves, which fails and why."""
    assert {1} == {replica["revision"] for replica in mesh.ready_replicas(name)}
    assert "Paris" in mesh.ask(model=name)
    shown = mesh.weft("status").stdout
    row = next((line.split() for line in shown.splitlines() if line.split()[:1] == [name]), [shown])
    assert [name, "ready", "1", "llama.cpp", "2/2", "builtin:tiny"] == row[:6]
    assert ["revision", "2", "can't", "be", "served:"] == row[6:11]
    (model,) = [each for each in mesh.status()["models"] if each["name"] == name]
    assert (1, 2, "frobnicate" in model["failing"]["reason"]) == (model["serves"], model["failing"]["revision"], True)
    explained = mesh.weft("explain", name).stdout
    standing, numbers, _, decided = explained.splitlines()[:4]
    assert standing.startswith(f"{name} is ready: revision 2 can't be served: ")
    assert numbers.startswith("2 of 2 replicas ready; ")
    assert decided.partition(f" of model {name}: ")[0] in ready(mesh, name)
    assert f"revision 2 of {name} can't be served: " in explained
    assert 0 == mesh.weft("remove", name).returncode


@pytest.mark.slow
@pytest.mark.sabotage("endless-restarts")
def test_an_engine_that_dies_while_it_loads_is_started_four_times_and_then_given_up(mesh: MeshUnderTest) -> None:
    # given a model that loads, and a client that waits for it
    mesh.deploy("frail", {**SIMULATED, "engine_args": {"load_seconds": 6}}).raise_for_status()
    with Waiting(mesh, "frail") as waiting:
        # when its process is killed whenever it is there
        killed: set[int] = set()

        def killed_again() -> bool:
            for replica in mesh.replicas():
                if replica["model_name"] == "frail":
                    killed.update(kill_host(mesh, replica["id"]))
            return bool(waiting.answers)

        until("the waiting client has its answer", killed_again, 60)
        # then it is told why, and so is everybody else
        (answer,) = waiting.answers
    assert 503 == answer.status_code
    assert "SIGKILL" in answer.json()["error"]["message"]
    shown_everywhere(mesh, "frail", "SIGKILL", starts=4)
    assert 4 == len(killed)
    explained = mesh.weft("explain", "frail").stdout
    assert "its last process ended: the engine's process was killed by SIGKILL, not by its worker" in explained


@pytest.mark.slow
@pytest.mark.sabotage("mute-disk")
def test_a_worker_whose_disk_is_full_says_so_and_serves_again_when_there_is_room(
    mesh: MeshUnderTest, tmp_path: Path
) -> None:
    if not can_mount():
        pytest.skip("no mount of one's own is to be had here")
    with CrampedWorker(mesh, tmp_path) as worker:
        # given a worker without a byte left for its state
        worker.fill()
        # when it is to serve a model
        selector = {"disk": "tiny"}
        mesh.deploy("crowded", {**SIMULATED, "selector": selector}).raise_for_status()
        with Waiting(mesh, "crowded") as waiting:
            until("the waiting client has its answer", lambda: bool(waiting.answers), 60)
        # then the reason is everywhere
        assert "No space left on device" in waiting.answers[0].json()["error"]["message"]
        shown_everywhere(mesh, "crowded", "No space left on device", starts=4)
        # and with room, and a word from an admin, it serves
        worker.make_room()
        assert 0 == mesh.weft("retry", "crowded").returncode
        until("it serves", lambda: mesh.ready_replicas("crowded"))
        assert mesh.ask("Hello", "crowded", max_tokens=4)
        assert 0 == mesh.weft("remove", "crowded").returncode


def shown_everywhere(mesh: MeshUnderTest, model: str, words: str, *, starts: int | None = None) -> None:
    """The reason stands in `status`, at the model, in a client's error and in the log; and nothing is tried again."""

    def given_up() -> dict[str, Any] | None:
        found = [m for m in mesh.status()["models"] if m["name"] == model]
        return found[0] if found and found[0]["state"] == "unservable" else None

    assert words in until(f"{model} is given up", given_up, 60)["reason"]
    shown = mesh.weft("status", "--json")
    assert words in shown.stdout
    detail = mesh.http.get(f"{mesh.url}/v1/models/{model}").json()["weft"]
    assert ("unservable", True) == (detail["state"], words in detail["reason"])
    refused = mesh.chat("Hello", model)
    assert 503 == refused.status_code
    assert words in refused.json()["error"]["message"]
    id = detail["id"]
    failed = [event for event in mesh.facts("run", "failed") if f".{id}-" in event["key"]]
    assert words in failed[-1]["fact"]["reason"]
    if starts is not None:
        assert [starts] == [event["fact"]["starts"] for event in failed]
    head = mesh.status()["log"]["position"]
    time.sleep(2)
    loud = ("inspection", "model", "replica", "run")
    assert [] == [event for event in mesh.events(head) if event["kind"] in loud and id in event["key"]]


def failed_run(mesh: MeshUnderTest, replica: str) -> bool:
    """Whether its agent gave a replica up."""
    return any(event["key"].endswith(f".{replica}") for event in mesh.facts("run", "failed"))


def kill_host(mesh: MeshUnderTest, replica: str) -> list[int]:
    """`kill -9` of a replica's process on whatever worker it is, where there is one; what was killed."""
    killed: list[int] = []
    for host in [host for number in range(mesh.workers) for host in mesh.hosts(f"worker-{number + 1}")]:
        with suppress(psutil.NoSuchProcess):
            if any(f"/{replica}.json" in word for word in host.cmdline()):
                os.kill(host.pid, signal.SIGKILL)
                killed.append(host.pid)
    return killed


class Waiting:
    """A client that asks a model once, and waits for as long as it takes."""

    def __init__(self, mesh: MeshUnderTest, model: str) -> None:
        self.answers: list[httpx.Response] = []
        self._thread = threading.Thread(target=self._ask, args=(f"{mesh.url}/v1/chat/completions", model))

    def __enter__(self) -> "Waiting":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(90)

    def _ask(self, url: str, model: str) -> None:
        body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
        self.answers.append(httpx.post(url, json=body, timeout=80))
