"""Fifty streams a second of two seconds each, while machines leave and join again and again: all end whole.

`WEFT_STORY_LEAVING_S` sets how long it goes on at least; each machine leaves once in a quarter of a minute.
"""

import math
import os
import subprocess
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from weft_testing.machine import done, end, new_token, reaches, start
from weft_testing.story import MeshUnderTest, until

from .stream_load import StreamLoad

SECONDS = max(60.0, float(os.environ.get("WEFT_STORY_LEAVING_S", "120")))
TIMES = math.ceil(SECONDS / 15)
PER_SECOND = 50
SPEC: dict[str, Any] = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "concurrency": 256,
    "engine_args": {"ms_per_token": 50},
    "min_replicas": 2,
    "max_replicas": 2,
    "strategy": "spread",
}
TOKENS = 40


class Guest:
    """A machine that leaves and joins: by turns its worker is told to stop, or an admin drains it."""

    def __init__(self, mesh: MeshUnderTest, name: str, secret: str) -> None:
        self.mesh, self.name, self._secret = mesh, name, secret
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return start(self.mesh, self.name, self._secret, "--max-replicas-per-model", "1")

    def leave_and_join(self, turn: int) -> None:
        """Once, and wait until it may serve again."""
        if turn % 2:
            done(self.mesh, "drain", self.name, "--deadline", "60s")
            done(self.mesh, "nodes", "resume", self.name)
        else:
            assert 0 == end(self._process)
            assert "drained" == reaches(self.mesh, self.name, "drained")["state"]
            self._process = self._start()
        reaches(self.mesh, self.name, "healthy")

    def close(self) -> None:
        end(self._process)


@pytest.mark.slow
@pytest.mark.sabotage("cut-at-retirement")
def test_no_stream_fails_and_none_is_cut_while_machines_leave_and_join(tmp_path: Path) -> None:
    with ExitStack() as stack:
        # given a mesh with two further machines, and a model on two of its three nodes
        mesh = MeshUnderTest(tmp_path)
        stack.callback(mesh.close)
        mesh.up("--no-model")
        secret = new_token(mesh, "--auto-approve")
        guests = [Guest(mesh, name, secret) for name in ("left", "right")]
        for guest in guests:
            stack.callback(guest.close)
            reaches(mesh, guest.name, "healthy")
        mesh.deploy("busy", SPEC).raise_for_status()
        until("both replicas serve", lambda: 2 == len(mesh.ready_replicas("busy")), 60)
        after = mesh.status()["log"]["position"]
        # when streams come without a pause, and the machines leave and join one after the other
        with StreamLoad(mesh.url, "busy", per_second=PER_SECOND, tokens=TOKENS) as load:
            load.goes_on(PER_SECOND)
            enough = threading.Timer(SECONDS, lambda: None)
            enough.start()
            for turn in range(TIMES):
                for guest in guests:
                    guest.leave_and_join(turn)
            enough.join()
        # then each machine left as often as it should
        left = mesh.facts("node", "drained", after)
        print(
            f"{len(load.ended)} streams, {load.most_at_once} at once at most; {len(left)} times a machine left,"
            f" {sum(load.troubles.values())} streams in trouble"
        )
        assert {TIMES} == {sum(event["key"] == key for event in left) for key in {event["key"] for event in left}}
        assert 2 == len({event["key"] for event in left})
        assert [{}] * len(left) == [event["fact"]["unfinished"] for event in left]
        # and no stream failed and none was cut
        assert {} == load.troubles
        assert len(load.ended) >= 0.9 * PER_SECOND * SECONDS
