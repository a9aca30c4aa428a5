"""An engine that stands still, busy or idle: a reason within seconds, its requests go elsewhere, and it comes back."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest
from weft_testing.story import MeshUnderTest, until

SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated", "concurrency": 8}
SLOW = {**SIMULATED, "engine_args": {"ms_per_token": 100}, "min_replicas": 2, "max_replicas": 2}
STANDS = {**SIMULATED, "engine_args": {"stall_after_tokens": 1}}
"""It makes one token in its life, the one that makes it ready."""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh whose worker gives up an engine that stands still after some seconds."""
    folder = tmp_path_factory.mktemp("stalled")
    with MeshUnderTest(folder, WEFT_STALL_TIMEOUT="4", WEFT_CANARY_AFTER="3") as mesh:
        yield mesh


@pytest.fixture(scope="module")
def whole(mesh: MeshUnderTest) -> list[str]:
    """What the model `slow` says, from two replicas, when nothing happens."""
    mesh.deploy("slow", SLOW).raise_for_status()
    until("both are ready", lambda: 2 == len(mesh.ready_replicas("slow")), 60)
    with Asked(mesh, "slow") as calm:
        return words_of(calm.end())


class Asked:
    """One greedy request, asked on a thread, and which replica takes it."""

    def __init__(self, mesh: MeshUnderTest, model: str, **fields: Any) -> None:
        self.text, self.trouble, self.replica = "", "", ""
        body = {"model": model, "stream": True, "max_tokens": 40, "temperature": 0, **fields}
        body["messages"] = [{"role": "user", "content": fields.pop("content", "Tell me a story.")}]
        body.pop("content", None)
        self._thread = threading.Thread(target=self._ask, args=(f"{mesh.url}/v1/chat/completions", body))

    def __enter__(self) -> "Asked":
        self._thread.start()
        until("it is being answered", lambda: self.text)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> str:
        """Its whole answer."""
        self._thread.join(90)
        assert not self._thread.is_alive(), "a request did not end within its bound"
        return self.text

    def _ask(self, url: str, body: dict[str, Any]) -> None:
        headers = {"x-weft-explain": "1"}
        with httpx.stream("POST", url, json=body, headers=headers, timeout=80) as response:
            self.replica = response.headers["x-weft-replica"]
            for line in response.iter_lines():
                if '"error"' in line:
                    self.trouble = line
                self.text += line


def host_of(mesh: MeshUnderTest, replica: str) -> psutil.Process | None:
    """A replica's process; None while it has none."""
    for host in mesh.hosts():
        try:
            if any(f"/{replica}.json" in word for word in host.cmdline()):
                return host
        except psutil.NoSuchProcess:
            continue
    return None


def ends_of(mesh: MeshUnderTest, replica: str) -> list[str]:
    """Why a replica's runs ended, by the log."""
    return [each["fact"]["detail"] for each in mesh.facts("run", "stopped") if each["key"].endswith(f".{replica}")]


def is_back(mesh: MeshUnderTest, model: str, replica: str, before: int) -> bool:
    """Whether a replica answers in another process."""
    host = host_of(mesh, replica)
    return host is not None and host.pid != before and replica in {r["id"] for r in mesh.ready_replicas(model)}


@pytest.mark.slow
@pytest.mark.sabotage("stalls-for-ever")
def test_a_host_that_is_stopped_while_it_answers_loses_no_request_and_is_replaced(
    mesh: MeshUnderTest, whole: list[str]
) -> None:
    until("both are ready", lambda: 2 == len(mesh.ready_replicas("slow")), 60)
    # when the process that answers is stopped
    with Asked(mesh, "slow") as asked:
        host = until("its process is found", lambda: host_of(mesh, asked.replica))
        host.suspend()
        # then the answer is the same, from the other one
        assert (whole, "") == (words_of(asked.end()), asked.trouble)
    # and the reason is told, and it comes back by itself
    until("it is told why", lambda: any("its host said nothing for" in why for why in ends_of(mesh, asked.replica)), 45)
    until("it is back", lambda: is_back(mesh, "slow", asked.replica, host.pid), 60)
    assert not host.is_running()


@pytest.mark.slow
@pytest.mark.sabotage("stalls-for-ever")
def test_a_host_that_is_stopped_while_nobody_asks_is_replaced(mesh: MeshUnderTest) -> None:
    (replica,) = [each["id"] for each in mesh.ready_replicas("tiny")]
    host = until("its process is found", lambda: host_of(mesh, replica))
    host.suspend()

    until("it is told why", lambda: any("its host said nothing for" in why for why in ends_of(mesh, replica)), 45)
    assert ends_of(mesh, replica)[-1].endswith(", and it did not end when asked to")
    until("it is back", lambda: is_back(mesh, "tiny", replica, host.pid), 60)
    assert "Paris" in mesh.ask()


@pytest.mark.slow
@pytest.mark.sabotage("no-canary")
def test_an_idle_engine_that_stands_still_under_a_living_host_is_found_by_its_canary(mesh: MeshUnderTest) -> None:
    mesh.deploy("stands", STANDS).raise_for_status()
    (replica,) = until("it is ready", lambda: [each["id"] for each in mesh.ready_replicas("stands")], 60)
    host = until("its process is found", lambda: host_of(mesh, replica))

    until("it is told why", lambda: any("without a step of the engine" in why for why in ends_of(mesh, replica)), 45)
    until("another is started", lambda: host_of(mesh, replica) not in (None, host), 60)
    degraded = [each for each in mesh.facts("run", "degraded") if each["key"].endswith(f".{replica}")]
    assert "without a step of the engine" in degraded[0]["fact"]["why"]
    assert 0 == mesh.weft("remove", "stands").returncode


@pytest.mark.slow
@pytest.mark.sabotage("stalls-for-ever")
def test_what_runs_on_an_engine_that_one_request_stopped_goes_on_elsewhere(
    mesh: MeshUnderTest, whole: list[str]
) -> None:
    # given two replicas, and a request that one of them answers
    until("both are ready", lambda: 2 == len(mesh.ready_replicas("slow")), 60)
    with Asked(mesh, "slow") as asked:
        # when a drawn request stops its engine
        headers = {"x-weft-replica": asked.replica}
        poison = until("it ends", lambda: mesh.chat("[[stall]]", "slow", headers=headers, temperature=1, seed=1))
        # then that one is told
        assert 503 == poison.status_code
        # and the other goes on
        assert (whole, "") == (words_of(asked.end()), asked.trouble)
    why = "without a step of the engine"
    until("it is told why", lambda: any(why in each for each in ends_of(mesh, asked.replica)), 45)


def words_of(stream: str) -> list[str]:
    """The pieces of text in a stream's lines."""
    return [piece.split('"', 1)[0] for piece in stream.split('"content":"')[1:]]
