"""The log is away for a minute and a half: requests are served all the while, and nobody is taken for lost."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from weft_testing.story import MeshUnderTest, until

AWAY_S = 90
SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated", "strategy": "spread"}
LONG = {"context_tokens": 2048, "engine_args": {"ms_per_token": 100}}
TOKENS = 1000
"""Of a stream that lasts longer than the log is away."""


class LongStream(threading.Thread):
    """One chat that streams all the while."""

    def __init__(self, mesh: MeshUnderTest) -> None:
        super().__init__(daemon=True)
        self._mesh = mesh
        self.pieces = 0
        self.last = ""
        self.start()

    def run(self) -> None:
        body = {"model": "long", "messages": [{"role": "user", "content": "Go on."}], "stream": True}
        body |= {"ignore_eos": True, "max_tokens": TOKENS}
        with self._mesh.http.stream("POST", f"{self._mesh.url}/v1/chat/completions", json=body, timeout=60) as response:
            for line in response.iter_lines():
                if line:
                    self.pieces += '"content"' in line
                    self.last = line


@pytest.mark.slow
@pytest.mark.parametrize(
    "workers", [pytest.param(1, marks=pytest.mark.sabotage("silence-counts-always")), pytest.param(2)]
)
def test_ninety_seconds_without_nats_cost_nothing(tmp_path: Path, workers: int) -> None:
    # given a registry that judges silence, as it does from half a minute after its start
    with MeshUnderTest(tmp_path, workers=workers, WEFT_START_GRACE="1") as mesh:
        copies = {"min_replicas": workers, "max_replicas": workers}
        mesh.deploy("long", SIMULATED | LONG).raise_for_status()
        mesh.deploy("fresh", SIMULATED | copies).raise_for_status()
        until("all serve", lambda: len(mesh.ready_replicas("fresh")) == workers and mesh.ready_replicas("long"), 60)
        until("all are there", lambda: {node["state"] for node in mesh.status()["nodes"]} == {"healthy"}, 30)
        time.sleep(15)  # the registry's graces pass: silence would count
        outlives_the_log(mesh)


def outlives_the_log(mesh: MeshUnderTest) -> None:
    before = {(replica["id"], replica["node"], replica["incarnation"]) for replica in ready(mesh)}
    head = mesh.status()["log"]["position"]
    streams = [LongStream(mesh), LongStream(mesh)]
    until("they run", lambda: all(stream.pieces for stream in streams))
    nats = mesh.pid("nats")
    # when the server hangs
    os.kill(nats, signal.SIGSTOP)
    try:
        ends = time.monotonic() + AWAY_S
        asked = 0
        while time.monotonic() < ends:
            # then new requests are served, by replicas that nobody had asked before, too
            assert "Paris" in mesh.ask()
            assert mesh.ask(model="fresh", max_tokens=4)
            asked += 1
            time.sleep(1)
    finally:
        os.kill(nats, signal.SIGCONT)
    assert asked > 20
    # and streams go on to their ends
    for stream in streams:
        stream.join(90)
        assert (False, "data: [DONE]", True) == (stream.is_alive(), stream.last, stream.pieces > TOKENS // 2)
    # and all is as before when it returns
    until("the log is back", lambda: mesh.status()["log"]["connected"], 30)
    time.sleep(15)  # longer than the silence after which a node would be called offline
    judged = ("unhealthy", "offline", "brake_set", "scaled", "unassigned", "stopped", "failed", "degraded")
    assert [] == [event for event in mesh.events(head) for fact in event["facts"] if fact["type"] in judged]
    assert before == {(replica["id"], replica["node"], replica["incarnation"]) for replica in ready(mesh)}
    assert {"healthy"} == {node["state"] for node in mesh.status()["nodes"]}
    # and what is asked for now is done
    mesh.deploy("after", SIMULATED).raise_for_status()
    until("it serves", lambda: mesh.ready_replicas("after"), 60)


def ready(mesh: MeshUnderTest) -> list[dict[str, str]]:
    return [replica for replica in mesh.replicas() if replica["state"] == "ready"]
