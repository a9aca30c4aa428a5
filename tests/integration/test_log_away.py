"""The log is away for a minute: requests are served all the while, and nobody is taken for lost."""

import os
import signal
import time
from pathlib import Path

import pytest
from weft_testing.story import MeshUnderTest, until


@pytest.mark.slow
@pytest.mark.sabotage("silence-counts-always")
def test_a_minute_without_nats_costs_no_node_no_replica_and_no_request(tmp_path: Path) -> None:
    # given a registry that judges silence, as it does from half a minute after its start
    with MeshUnderTest(tmp_path, WEFT_START_GRACE="1") as mesh:
        outlives_a_minute_without_nats(mesh)


def outlives_a_minute_without_nats(mesh: MeshUnderTest) -> None:
    replicas = {replica["id"] for replica in mesh.ready_replicas()}
    head = mesh.status()["log"]["position"]
    nats = mesh.pid("nats")
    # when the server hangs for 60 s
    os.kill(nats, signal.SIGSTOP)
    try:
        ends = time.monotonic() + 60
        asked = 0
        while time.monotonic() < ends:
            assert "Paris" in mesh.ask()
            asked += 1
            time.sleep(1)
    finally:
        os.kill(nats, signal.SIGCONT)
    assert asked > 20
    # then all is as before when it returns
    until("the log is back", lambda: mesh.status()["log"]["connected"], 30)
    time.sleep(15)  # longer than the silence after which a node would be called offline
    judged = ("unhealthy", "offline", "brake_set", "scaled", "unassigned")
    assert [] == [event for event in mesh.events(head) for fact in event["facts"] if fact["type"] in judged]
    assert replicas == {replica["id"] for replica in mesh.ready_replicas()}
    assert ["healthy"] == [node["state"] for node in mesh.status()["nodes"]]
