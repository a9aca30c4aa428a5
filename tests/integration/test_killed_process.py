"""`kill -9` of any one process while requests run: the mesh is back without help and nothing acknowledged is lost."""

import os
import signal
import threading
import time
from contextlib import suppress

import httpx
import psutil
import pytest
from weft_testing.story import MeshUnderTest, until

PARTS = [
    pytest.param("gateway", marks=pytest.mark.sabotage("no-restart")),
    pytest.param("nats", marks=pytest.mark.sabotage("forgetful-log")),
    pytest.param("host", marks=pytest.mark.sabotage("no-host-restart")),
    pytest.param("agent", marks=(pytest.mark.slow, pytest.mark.sabotage("no-agent-restart"))),
    *(
        pytest.param(part, marks=pytest.mark.slow)
        for part in ("worker-1", "registry", "scheduler", "reconciler", "metadata-cache", "postgres")
    ),
]
"""The launcher's parts by name (a worker is its supervisor), and what a supervisor starts: agent, host."""


class Asking:
    """Somebody who asks all the while. Every request must end: with an answer, an error, or a reset."""

    def __init__(self, mesh: MeshUnderTest) -> None:
        self._mesh = mesh
        self._stop = threading.Event()
        self.answered = 0
        self.refused: list[str] = []
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Asking":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(100)
        assert not self._thread.is_alive(), "a request did not end within its bound"

    def _ask(self) -> None:
        with httpx.Client(timeout=75.0) as client:
            while not self._stop.is_set():
                body = {"model": "tiny", "messages": [{"role": "user", "content": "Tell me a story."}]}
                try:
                    response = client.post(f"{self._mesh.url}/v1/chat/completions", json=body)
                except (httpx.RemoteProtocolError, httpx.ConnectError, httpx.ReadError) as error:
                    self.refused.append(type(error).__name__)
                    time.sleep(0.1)
                    continue
                if response.status_code == 200:
                    self.answered += 1
                else:
                    self.refused.append(f"{response.status_code} {response.text[:200]}")
                    assert response.json()["error"]["message"]


@pytest.mark.parametrize("part", PARTS)
def test_the_mesh_comes_back_by_itself_after_the_death_of(part: str, shaken_mesh: MeshUnderTest) -> None:
    mesh = shaken_mesh
    # given a mesh that answers, and what its log holds
    replicas = {replica["id"] for replica in mesh.ready_replicas()}
    before = [event["event_id"] for event in mesh.events()]
    with Asking(mesh) as asking:
        until("requests are answered", lambda: asking.answered > 2)
        # when
        killed = until("it has a process", lambda: process_of(part, mesh))
        os.kill(killed, signal.SIGKILL)
        # then another process takes its place, and chat answers again
        until("a new process", lambda: process_of(part, mesh) not in (None, killed))
        if part not in ("agent", "host"):
            until("it is ready", lambda: mesh.part(part)["state"] == "ready", 60)
        answered = asking.answered
        until("chat answers again", lambda: asking.answered > answered + 2, 60)
    # and nothing that the log had acknowledged is gone
    after = [event["event_id"] for event in until("the log can be read", mesh.events)]
    assert before == after[: len(before)]
    # and the same replica serves: nothing was lost for good
    until("the replica is ready", lambda: {r["id"] for r in mesh.ready_replicas()} == replicas, 60)


def process_of(part: str, mesh: MeshUnderTest) -> int | None:
    """The process of a part; None while it has none."""
    match part:
        case "agent":
            return next((each.pid for each in mesh.agents()), None)
        case "host":
            return host_of(mesh)
        case _:
            return mesh.part(part)["pid"]


def host_of(mesh: MeshUnderTest) -> int | None:
    """The built-in model's own process: other models may run beside it."""
    replicas = mesh.ready_replicas()
    for host in mesh.hosts():
        with suppress(psutil.NoSuchProcess):
            line = " ".join(host.cmdline())
            if any(f"/{replica['id']}.json" in line for replica in replicas):
                return host.pid
    return None
