"""The agent is killed at each step of a fetch, and started again: the right bytes, and never a model of wrong ones."""

import fcntl
import os
import signal
import threading
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from weft_testing.hub_server import HubServer, hub_server
from weft_testing.machine import done
from weft_testing.story import MeshUnderTest, until

pytestmark = pytest.mark.slow
MIB = 1 << 20
PIECE = 16 * MIB
GGUF = "tiny-F16.gguf"
Place = Callable[[str, int], bool]


class Stop:
    """Holds the hub where it is told to, and knows who came there and what was asked for."""

    def __init__(self) -> None:
        self._place: Place = lambda path, at: False
        self._go = threading.Event()
        self.reached = threading.Event()
        self.given: list[int] = []
        """Places of the MiBs of weights that were given, or are about to be."""

    def set(self, place: Place) -> None:
        self._place, self.given = place, []
        self.reached.clear()
        self._go.clear()

    def release(self) -> None:
        self._place = lambda path, at: False
        self._go.set()

    def weights(self, path: str, at: int) -> None:
        self.given.append(at)
        self._hold(path, at)

    def request(self, path: str) -> int:
        self._hold(path, -1)
        return 0

    def _hold(self, path: str, at: int) -> None:
        if self._place(path, at):
            self.reached.set()
            self._go.wait(90)


@pytest.fixture(scope="module")
def hub() -> Iterator[HubServer]:
    with hub_server() as server:
        yield server


@pytest.fixture
def stop(hub: HubServer) -> Iterator[Stop]:
    stop = Stop()
    hub.hold, hub.broken = stop.weights, stop.request
    yield stop
    stop.release()


@pytest.fixture(scope="module")
def mesh(hub: HubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    folder = tmp_path_factory.mktemp("killed-fetches")
    hub_home = str(folder / "hf")
    with MeshUnderTest(folder, WEFT_HUB=hub.url, WEFT_SOURCES_ALLOW="127.0.0.1", HF_HOME=hub_home) as mesh:
        yield mesh


class Fetch:
    """Of a model of its own, whose weights are a tiny model's and so many bytes more."""

    def __init__(self, mesh: MeshUnderTest, hub: HubServer, name: str, more: int) -> None:
        self.mesh, self.name = mesh, name
        self.body = weft_tiny.gguf_path().read_bytes() + bytes(more)
        hub.repository(f"o/{name}", {GGUF: self.body})
        self.store = next(mesh.state.glob("workers/*/files"))

    def deploy(self) -> None:
        """Accepted, with what an inspection found, and not begun."""
        done(self.mesh, "nodes", "cordon", "worker-1")
        spec = {"source": {"kind": "hf", "repository": f"o/{self.name}"}, "engine": "llama.cpp"}
        self.mesh.deploy(self.name, spec).raise_for_status()

    def begin(self) -> None:
        done(self.mesh, "nodes", "uncordon", "worker-1")

    def begins_and_waits(self, stop: Stop) -> None:
        """Begun, and the hub holds back the first byte."""
        stop.set(lambda path, at: at >= 0)
        self.begin()
        assert stop.reached.wait(60)

    def kill(self) -> None:
        """`kill -9` of the agent, while nothing is ready, and what looks whole is."""
        assert [] == self.mesh.ready_replicas(self.name)
        self.kill_unasked()
        assert {self.body} >= {path.read_bytes() for path in self.laid_out()}

    def kill_unasked(self) -> None:
        """While the log is silent."""
        for agent in self.mesh.agents():
            agent.kill()
            agent.wait(20)

    def whole(self) -> bool:
        return any(path.stat().st_size == len(self.body) for path in self.store.glob(f"layouts/[!.]*/{GGUF}"))

    def laid_out(self) -> list[Path]:
        """This model's weights, where engines would read them."""
        known = {each["fact"]["files"] for each in self.mesh.facts("machine", "files_came") if not self._is_ours(each)}
        return [path for path in self.store.glob(f"layouts/[!.]*/{GGUF}") if path.parent.name not in known]

    def blob(self) -> bool:
        return any(path.stat().st_size == len(self.body) for path in self.store.glob("blobs/*/*"))

    def pieces(self) -> set[str]:
        """Those of unfinished files that the journals know of."""
        return {line for path in self.store.glob("partial/*.journal") for line in path.read_text().splitlines()[1:]}

    def ends_well(self) -> None:
        """It is ready, of the right bytes, and told once."""
        until("it is ready", lambda: self.mesh.ready_replicas(self.name), 120)
        assert "The capital of France is Paris." == self.mesh.ask(model=self.name)
        came = [each for each in self.mesh.facts("machine", "files_came") if self._is_ours(each)]
        (fact,) = (each["fact"] for each in came)
        assert self.body == (self.store / "layouts" / fact["files"] / GGUF).read_bytes()
        assert [] == [*self.store.glob("partial/*.part"), *self.store.glob("layouts/.*")]
        done(self.mesh, "remove", self.name)

    def _is_ours(self, event: dict[str, Any]) -> bool:
        return event["fact"]["bytes"] == len(self.body)


@contextmanager
def locked(store: Path) -> Generator[None]:
    """Whoever puts a blob in its place, or lays a model out, waits for this lock."""
    opened = os.open(store / ".lock", os.O_RDWR)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


@contextmanager
def silent(process: int) -> Generator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def resolving(fetch: Fetch, stop: Stop) -> int | None:
    """While the hub is asked where the file is."""
    stop.set(lambda path, at: "/resolve/" in path and at < 0)
    fetch.begin()
    assert stop.reached.wait(60)
    fetch.kill()
    return 0


def first_byte(fetch: Fetch, stop: Stop) -> int | None:
    fetch.begins_and_waits(stop)
    fetch.kill()
    assert (False, []) == (fetch.blob(), fetch.laid_out())
    return 0


def between_pieces(fetch: Fetch, stop: Stop) -> int | None:
    stop.set(lambda path, at: at >= PIECE + 4 * MIB)
    fetch.begin()
    until("the first piece is noted", lambda: stop.reached.is_set() and "0" in fetch.pieces(), 60)
    fetch.kill()
    return PIECE


def adopting(fetch: Fetch, stop: Stop) -> int | None:
    """When all has come, before it is a blob."""
    fetch.begins_and_waits(stop)
    with locked(fetch.store):
        stop.release()
        until("all of it has come", lambda: "0" in fetch.pieces(), 60)
        fetch.kill()
        assert (False, []) == (fetch.blob(), fetch.laid_out())
    return None


def laying_out(fetch: Fetch, stop: Stop) -> int | None:
    """When it is a blob, before an engine could read it: who waits for the lock has it before it is taken again."""
    fetch.begins_and_waits(stop)
    with locked(fetch.store):
        stop.release()
        until("all of it has come", lambda: "0" in fetch.pieces(), 60)
    for _ in range(1000):
        with locked(fetch.store):
            if fetch.blob():
                fetch.kill()
                return None
    raise AssertionError("it never became a blob")


def telling(fetch: Fetch, stop: Stop) -> int | None:
    """When it is laid out, before the log was told."""
    fetch.begins_and_waits(stop)
    with silent(fetch.mesh.pid("nats")):
        stop.release()
        until("it is laid out", fetch.whole, 60)
        fetch.kill_unasked()
    return None


STEPS = [
    pytest.param(between_pieces, marks=pytest.mark.sabotage("forgetful-pieces")),
    resolving,
    first_byte,
    adopting,
    laying_out,
    telling,
]


@pytest.mark.parametrize("step", STEPS)
def test_an_agent_that_is_killed_within_a_fetch_asks_for_what_lacks_and_serves_the_right_bytes(
    step: Callable[[Fetch, Stop], int | None], mesh: MeshUnderTest, hub: HubServer, stop: Stop
) -> None:
    # given a model whose fetch has not begun
    name = step.__name__.replace("_", "-")
    fetch = Fetch(mesh, hub, name, 40 * MIB if step is between_pieces else zlib.crc32(name.encode()) % MIB)
    fetch.deploy()
    # when the agent is killed at a step of it
    lacks_from = step(fetch, stop)
    stop.given = []
    stop.release()
    # then the next one asks for what lacks, and nothing else is ever served
    fetch.ends_well()
    assert lacks_from == min(stop.given, default=None)
