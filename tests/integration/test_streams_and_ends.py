"""Whatever ends or starts again while chats stream: each stream comes to its end or to an explicit error, in time,
and the next chat is answered."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest
from weft_contracts.catalogue import SERVICES
from weft_testing.story import MeshUnderTest, until

SLOW_MODEL = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "concurrency": 16,
    "engine_args": {"ms_per_token": 40},
}
"""A token every 40 ms: its streams last 8 s."""
TOKENS = 200
QUESTION = "Tell me a story."
BOUND_S = 90.0
"""What a stream may take in all, with every wait for another replica. A bound, no expectation."""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh that serves the built-in model, and one that takes its time. Every case leaves it as it was."""
    with MeshUnderTest(tmp_path_factory.mktemp("streams")) as mesh:
        mesh.deploy("slow", SLOW_MODEL).raise_for_status()
        until("both models serve", lambda: mesh.ready_replicas() and mesh.ready_replicas("slow"), 60)
        yield mesh


@pytest.fixture(scope="module")
def story(mesh: MeshUnderTest) -> str:
    """What a greedy stream says when nothing happens to it."""
    return mesh.ask(QUESTION, "slow", max_tokens=TOKENS, ignore_eos=True)


class Stream:
    """One streamed chat, read in a thread of its own to whatever end it has."""

    def __init__(self, mesh: MeshUnderTest, model: str, **fields: Any) -> None:
        question = [{"role": "user", "content": QUESTION}]
        self._url = f"{mesh.url}/v1/chat/completions"
        self._body = {"model": model, "messages": question, "stream": True, "ignore_eos": True, **fields}
        self.text = ""
        self.pieces = 0
        self.finish: str | None = None
        self.error: str | None = None
        self.cut: str | None = None
        """How the connection broke, if it did."""
        self._last = ""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def end(self) -> str:
        """How it ended: complete, error, cut, or silent, which none may be. Waits for it, bounded."""
        self._thread.join(BOUND_S)
        if self._thread.is_alive():
            return f"still runs after {BOUND_S:g} s"
        if self.cut is not None:
            return "cut"
        if self._last != "[DONE]" or (self.finish is None) == (self.error is None):
            return f"silent: finish {self.finish}, error {self.error}, last {self._last!r}"
        return "complete" if self.error is None else "error"

    def _read(self) -> None:
        try:
            with (
                httpx.Client(timeout=BOUND_S) as http,
                http.stream("POST", self._url, json=self._body) as response,
            ):
                if response.status_code != 200:
                    self.error, self._last = json.loads(response.read())["error"]["message"], "[DONE]"
                    return
                for line in response.iter_lines():
                    if line:
                        self._take(line.removeprefix("data: "))
        except httpx.TransportError as error:
            self.cut = repr(error)

    def _take(self, data: str) -> None:
        self._last = data
        if data == "[DONE]":
            return
        chunk = json.loads(data)
        if "error" in chunk:
            self.error = chunk["error"]["message"]
            return
        choice = chunk["choices"][0]
        self.text += choice["delta"].get("content") or ""
        self.finish = choice["finish_reason"] or self.finish
        self.pieces += 1


class Streams:
    """Two greedy streams, which another replica could go on with, and two drawn ones, which none could."""

    def __init__(self, mesh: MeshUnderTest) -> None:
        asked: dict[str, Any] = {"model": "slow", "max_tokens": TOKENS}
        self.greedy = [Stream(mesh, **asked, temperature=0) for _ in range(2)]
        self.drawn = [Stream(mesh, **asked, temperature=1) for _ in range(2)]
        self.all = [*self.greedy, *self.drawn]
        until("all streams run", lambda: all(each.pieces > 5 for each in self.all))

    @property
    def ends(self) -> set[str]:
        return {each.end for each in self.all}


def started_again(mesh: MeshUnderTest, part: str, before: int) -> None:
    """Wait until another process has taken a part's place and all is ready."""
    if part == "agent":
        until("a new agent", lambda: [each for each in mesh.agents() if each.pid != before], 60)
        return
    until(f"a new {part}", lambda: mesh.part(part)["pid"] not in (None, before), 60)
    until(f"{part} is ready", lambda: mesh.part(part)["state"] == "ready", 60)


def answers(mesh: MeshUnderTest) -> None:
    """The next chat is answered by either model, at the first try; whoever must load first is waited for."""
    for model in ("tiny", "slow"):
        try:
            response = mesh.chat("What is the capital of France?", model, max_tokens=20)
        except httpx.TransportError as error:
            pytest.fail(f"the next chat was not answered: {error!r}")
        assert 200 == response.status_code, response.text
        assert model == "slow" or "Paris" in response.text


@pytest.mark.slow
@pytest.mark.sabotage("silent-break")
def test_engine_processes_killed_in_midstream_end_no_stream_silently(mesh: MeshUnderTest, story: str) -> None:
    streams = Streams(mesh)
    quick = [Stream(mesh, "tiny", max_tokens=900, temperature=1) for _ in range(4)]
    until("the built-in model streams", lambda: any(each.pieces for each in quick))
    # when every engine process of the node is killed
    for host in mesh.hosts():
        host.kill()
    # then what was drawn can't go on, and says so
    assert {"error"} == {each.end for each in streams.drawn}
    assert {"The replica failed"} == {str(each.error).partition(":")[0] for each in streams.drawn}
    # and what the next process would say word for word the same goes on there, if that is ready in time
    assert {each.end for each in streams.greedy} <= {"complete", "error"}
    assert {each.text for each in streams.greedy if each.end == "complete"} <= {story}
    assert {each.end for each in quick} <= {"complete", "error"}
    # and the next chat is answered at once, or as soon as a replica is loaded
    answers(mesh)


@pytest.mark.slow
@pytest.mark.sabotage("hosts-die-with-agent")
def test_a_killed_agent_disturbs_no_stream(mesh: MeshUnderTest, story: str) -> None:
    streams = Streams(mesh)
    (agent,) = mesh.agents()
    agent.kill()
    answers(mesh)
    assert {"complete"} == streams.ends
    assert {story} == {each.text for each in streams.greedy}
    started_again(mesh, "agent", agent.pid)
    answers(mesh)


@pytest.mark.slow
@pytest.mark.sabotage("silent-break")
def test_a_killed_supervisor_takes_its_engines_along_and_each_stream_says_so(mesh: MeshUnderTest) -> None:
    streams = Streams(mesh)
    hosts = mesh.hosts()
    supervisor = mesh.kill("worker-1")
    assert {each.end for each in streams.drawn} == {"error"}
    assert {each.end for each in streams.greedy} <= {"complete", "error"}
    _, alive = psutil.wait_procs(hosts, 30)
    assert [] == alive
    answers(mesh)
    started_again(mesh, "worker-1", supervisor)
    answers(mesh)


@pytest.mark.slow
@pytest.mark.sabotage("hasty-gateway")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_gateway_that_starts_again_ends_its_streams_openly(mesh: MeshUnderTest, number: signal.Signals) -> None:
    streams = Streams(mesh)
    before = mesh.pid("gateway")
    os.kill(before, number)
    # told to stop it lets them finish, within its bound; killed it can say nothing, but the connection breaks
    assert streams.ends <= ({"complete", "error"} if number == signal.SIGTERM else {"cut"})
    started_again(mesh, "gateway", before)
    answers(mesh)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        *(each for each in SERVICES if each != "gateway"),
        pytest.param("nats", marks=pytest.mark.sabotage("dies-with-the-log")),
        "postgres",
    ],
)
def test_no_stream_notices_the_restart_of(mesh: MeshUnderTest, story: str, part: str) -> None:
    streams = Streams(mesh)
    before = mesh.pid(part)
    os.kill(before, signal.SIGTERM if part in SERVICES else signal.SIGKILL)
    answers(mesh)
    assert {"complete"} == streams.ends
    assert {story} == {each.text for each in streams.greedy}
    started_again(mesh, part, before)
    answers(mesh)


@pytest.mark.slow
@pytest.mark.sabotage("hasty-gateway")
def test_all_services_and_servers_restarted_at_once_end_no_stream_silently(mesh: MeshUnderTest) -> None:
    streams = Streams(mesh)
    before = {part: mesh.pid(part) for part in (*SERVICES, "nats", "postgres")}
    for part, pid in before.items():
        os.kill(pid, signal.SIGTERM if part in SERVICES else signal.SIGKILL)
    assert streams.ends <= {"complete", "error"}
    for part, pid in before.items():
        started_again(mesh, part, pid)
    answers(mesh)
    # and nothing was lost over it: the same two replicas serve
    assert 2 == len([each for each in mesh.replicas() if each["state"] == "ready"])
