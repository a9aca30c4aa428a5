"""What goes wrong with a model is said: in `status`, in the events, to the client that waits. And nothing loops."""

import os
import signal
import subprocess
import sys
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

SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh that gives up a load after some seconds."""
    with MeshUnderTest(tmp_path_factory.mktemp("failures"), WEFT_LOAD_DEADLINE="8") as mesh:
        yield mesh


@pytest.mark.sabotage("permanent-retried")
def test_a_wrong_engine_argument_is_told_in_the_engines_words_and_not_tried_again(mesh: MeshUnderTest) -> None:
    deployed = mesh.weft("deploy", "tiny", "--name", "odd", "--engine-arg", "frobnicate=1")

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
    assert "signal 9" in answer.json()["error"]["message"]
    shown_everywhere(mesh, "frail", "signal 9", starts=4)
    assert 4 == len(killed)


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


def kill_host(mesh: MeshUnderTest, replica: str) -> list[int]:
    """`kill -9` of a replica's process where there is one; what was killed."""
    killed: list[int] = []
    for host in mesh.hosts():
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


_MOUNT = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")


def can_mount() -> bool:
    """Whether a process may have a file system of its own here."""
    try:
        return 0 == subprocess.run([*_MOUNT, "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False).returncode
    except OSError:
        return False


class CrampedWorker:
    """A second worker whose state lies on a file system of one MiB that only it sees."""

    def __init__(self, mesh: MeshUnderTest, folder: Path) -> None:
        self._mesh, self._state = mesh, folder / "cramped"
        self._state.mkdir()
        self._log = folder / "cramped.log"
        self._filler = self._state / "filler"

    def __enter__(self) -> "CrampedWorker":
        token = (self._mesh.state / "join-token").read_text().strip()
        program = (
            f"mount -t tmpfs -o size=1m tmpfs '{self._state}' && exec '{sys.executable}' -m weft_cli worker "
            f"--join {self._mesh.url} --name cramped --labels disk=tiny --state '{self._state}'"
        )
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*_MOUNT, program],
                env={k: v for k, v in os.environ.items() if not k.startswith("WEFT_")} | {"WEFT_JOIN_TOKEN": token},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

        def healthy() -> bool:
            assert self._process.poll() is None, self._log.read_text()
            nodes = self._mesh.status()["nodes"]
            return any(n["name"] == "cramped" and n["state"] == "healthy" and n["backends"] for n in nodes)

        until("the cramped worker is healthy", healthy, 60)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)

    def fill(self) -> None:
        """Leave no byte."""
        with self._seen(self._filler).open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def make_room(self) -> None:
        self._seen(self._filler).unlink()

    def _seen(self, path: Path) -> Path:
        """A path as the worker sees it."""
        return Path(f"/proc/{self._process.pid}/root{path}")
