"""`kill -9` of any one process while requests run: the mesh is back without help and nothing acknowledged is lost."""

import threading
import time

import httpx
import pytest
from weft_testing.story import MeshUnderTest, until

PARTS = ["registry", "scheduler", "reconciler", "metadata-cache", "gateway", "nats", "postgres", "worker-1", "host"]


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


@pytest.mark.sabotage("no-restart")
@pytest.mark.parametrize("part", PARTS)
def test_the_mesh_comes_back_by_itself_after_the_death_of(part: str, mesh: MeshUnderTest) -> None:
    # given a mesh that answers, and what its log holds
    replicas = {replica["id"] for replica in mesh.ready_replicas()}
    before = [event["event_id"] for event in mesh.events()]
    with Asking(mesh) as asking:
        until("requests are answered", lambda: asking.answered > 2)
        # when
        if part == "host":
            (host, *_) = mesh.hosts()
            killed = host.pid
            host.kill()
        else:
            killed = mesh.kill(part)
        # then another process takes its place, and chat answers again
        if part == "host":
            until("a new engine host", lambda: [h for h in mesh.hosts() if h.pid != killed])
        else:
            until("a new process", lambda: mesh.part(part)["pid"] not in (None, killed))
            until("it is ready", lambda: mesh.part(part)["state"] == "ready", 60)
        answered = asking.answered
        until("chat answers again", lambda: asking.answered > answered + 2, 60)
    # and nothing that the log had acknowledged is gone
    after = [event["event_id"] for event in until("the log can be read", mesh.events)]
    assert before == after[: len(before)]
    # and the same replica serves: nothing was lost for good
    until("the replica is ready", lambda: {r["id"] for r in mesh.ready_replicas()} == replicas, 60)
