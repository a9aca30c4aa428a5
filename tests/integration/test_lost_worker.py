"""The serving worker dies and stays dead: chat answers again by itself, and the log says why it is where it is."""

from pathlib import Path

import pytest
from weft_testing.story import MeshUnderTest, until


@pytest.mark.slow
@pytest.mark.sabotage("no-replacing")
def test_a_lost_workers_replica_is_replaced_elsewhere_and_explained(tmp_path: Path) -> None:
    with MeshUnderTest(tmp_path, workers=3, WEFT_START_GRACE="5") as mesh:
        # given the worker that serves, held down
        (served,) = mesh.ready_replicas()
        worker = served["node_name"]
        assert 0 == mesh.weft("hold", worker).returncode
        # when supervisor, agent and hosts are killed
        family = [mesh.pid(worker), *(p.pid for p in mesh.processes() if is_of(p.pid, worker, mesh))]
        for pid in family:
            kill(pid)
        # then chat answers again, from another node, under another replica
        until("another replica is ready", lambda: [r for r in mesh.ready_replicas() if r["id"] != served["id"]], 60)
        assert "Paris" in until("chat answers", mesh.ask, 60)
        (now,) = [r for r in mesh.ready_replicas() if r["id"] != served["id"]]
        assert worker != now["node_name"]
        # and the explanation names every node, with its filter or its scores
        explained = mesh.weft("explain", now["id"])
        assert 0 == explained.returncode, explained.stderr
        for name in ("worker-1", "worker-2", "worker-3"):
            assert name in explained.stdout
        # and nothing more is done about it
        (lost,) = [n for n in mesh.status()["nodes"] if n["name"] == worker]
        assert "offline" == lost["state"]


def is_of(pid: int, worker: str, mesh: MeshUnderTest) -> bool:
    """Whether a process belongs to this worker's state."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return f"{mesh.state}".encode() in words and worker.encode() in words


def kill(pid: int) -> None:
    import os
    import signal
    from contextlib import suppress

    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
