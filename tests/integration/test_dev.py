"""`weft dev`: a saved file starts anew what stands on it and nothing else, while requests go on."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from weft_devtools import tree
from weft_testing.story import until
from weft_testing.tree_mesh import MeshOfTree

pytestmark = pytest.mark.slow
SCHEDULER = "services/scheduler/src/weft_scheduler/app.py"
AGENT = "services/worker-agent/src/weft_worker_agent/inbound/wake.py"
ADAPTERS = "libs/engine/src/weft_engine/adapters/simulated_text.py"


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[MeshOfTree]:
    with MeshOfTree(tmp_path, tree.root()) as mesh:
        yield mesh


@pytest.mark.sabotage("dev-restarts-all")
def test_what_changes_in_the_tree_is_started_anew_and_everything_else_goes_on(mesh: MeshOfTree) -> None:
    # given a mesh that answers, and somebody who asks all the while
    first = until("all have processes", mesh.pids)
    stop, answers = threading.Event(), list[int]()

    def ask() -> None:
        with httpx.Client(timeout=60.0) as client:
            while not stop.wait(0.05):
                body = {"model": "tiny", "messages": [{"role": "user", "content": "What is the capital of France?"}]}
                answers.append(client.post(f"{mesh.url}/v1/chat/completions", json=body).status_code)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        # when a file of the scheduler is saved that Python can't read
        good = mesh.read(SCHEDULER)
        mesh.save(SCHEDULER, good + "\ndef (:\n")
        # then it is told, and the scheduler goes on with what it has
        until("the fault is told", lambda: f"dev: {SCHEDULER}:" in mesh.said())
        assert first == mesh.pids()
        # when the file is well again, but ends the service that loads it
        mesh.save(SCHEDULER, good + "\nraise SystemExit('broken by its story')\n")
        # then the service fails and says so
        until("it fails", lambda: "scheduler        | broken by its story" in mesh.said())
        until("it is told", lambda: "scheduler (process" in mesh.said())
        # and it is there again with the next save; nobody else was disturbed
        mesh.save(SCHEDULER, good)
        second = mesh.anew(first, "scheduler")
        assert {"scheduler"} == others(first, second)
        # when a file of the agent is saved, then its engine's host and its supervisor go on
        mesh.save(AGENT, mesh.read(AGENT) + "\n")
        third = mesh.anew(second, "agent")
        assert {"agent"} == others(second, third)
    finally:
        stop.set()
        asking.join(90)
    # and all who asked were answered
    assert {200} == set(answers)
    # when a library of the engine hosts is saved, then the worker starts anew as a whole
    mesh.save(ADAPTERS, mesh.read(ADAPTERS) + "\n")
    assert {"worker-1", "agent", "host"} == others(third, mesh.anew(third, "worker-1", "agent", "host"))
    assert "Paris" in until("it answers", mesh.ask, 60)
    # and what a running mesh can't take in is told
    mesh.save("requirements.lock", mesh.read("requirements.lock") + "\n")
    until("it is told", lambda: "dev: requirements.lock changed: end this" in mesh.said())
    # when it is told to end, then nothing is left
    mesh.down()
    assert [] == [each for each in mesh.processes() if each.status() != psutil.STATUS_ZOMBIE]


def others(before: dict[str, int], now: dict[str, int]) -> set[str]:
    """What has another process than before."""
    return {name for name, pid in now.items() if pid != before[name]}
