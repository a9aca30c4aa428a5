"""Two schedulers and two reconcilers that all decide at once on one log, one of them killed at random, again and again.

Of two instances one holds the lease and decides; the lease only saves double work. Here none asks for it, as if each
had been told that it leads: the guards of the commits alone keep right what is decided.
"""

import importlib
import random
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.commit import Recorded
from weft_contracts.facts.model import Scaled, Sized, SpecAccepted
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_fleet import Fleet
from weft_placement.verify import verify as places_again
from weft_reconciler.domain.verify import verify as replicas_again
from weft_testing.founded_mesh import FoundedMesh
from weft_testing.log_pages import recorded
from weft_testing.story import until

TWO = ("scheduler", "reconciler")
DECIDERS = [*TWO, *(f"{name}-2" for name in TWO)]
QUICKLY = {"WEFT_SCALE_UP_AFTER": "2", "WEFT_SCALE_UP_COOLDOWN": "2", "WEFT_SCALE_DOWN_AFTER": "3600"}
ROOM, PART = 2_100_000_000, 1_000_000_000
"""Of a node, and of one replica: two have room."""
ROUNDS, CHANGES = 3, 8
"""Deaths, and before each how often other numbers are asked for while all live: each is decided by two at once."""
CLIENTS = 4


def all_lead(folder: Path) -> Path:
    """A runtime whose services never ask whether they may decide."""
    runtime = importlib.import_module("weft_runtime")
    assert runtime.__file__ is not None
    shutil.copytree(
        Path(runtime.__file__).parent, folder / "weft_runtime", ignore=shutil.ignore_patterns("__pycache__")
    )
    file = folder / "weft_runtime" / "leadership.py"
    text, line = file.read_text(), "        return self._sequence > 0 and time.monotonic() - self._renewed < SILENCE\n"
    assert 1 == text.count(line)
    file.write_text(text.replace(line, "        return True\n"))
    return folder


@pytest.fixture(name="tree")
def a_runtime_that_leads(tmp_path: Path) -> Path:
    return all_lead(tmp_path / "all-lead")


@pytest.fixture(name="mesh")
def a_mesh_with_two_of_each(tmp_path: Path, tree: Path) -> Iterator[FoundedMesh]:
    mesh = FoundedMesh(tmp_path / "mesh", gateways=1, workers=2, twice=TWO, settings=QUICKLY)
    try:
        mesh.found()
        mesh.start_servers()
        for part in mesh.parts:
            mesh.start(part, tree if part in DECIDERS else None)
        for part in mesh.parts:
            mesh.ready(part)
        for worker in mesh.workers:
            mesh.weft("nodes", "vram-budget", worker, f"{ROOM // 1_000_000}MB")
        yield mesh
    finally:
        mesh.close()


class Load:
    """Clients that ask a model one after the other until the block ends."""

    def __init__(self, mesh: FoundedMesh, model: str) -> None:
        self._mesh, self._model = mesh, model
        self._ended = threading.Event()
        self.statuses = Counter[int]()
        self.refusals: list[str] = []
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(60)

    def _ask(self) -> None:
        body = {"model": self._model, "messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 20}
        while not self._ended.is_set():
            said = self._mesh.http.post(f"{self._mesh.url()}/v1/chat/completions", json=body | {"ignore_eos": True})
            self.statuses[said.status_code] += 1
            if said.status_code != 200:
                self.refusals.append(f"{said.status_code} {said.text[:300]}")


def spec(least: int, most: int) -> dict[str, Any]:
    args = {"ms_per_token": 30, "memory_bytes": PART}
    bounds = {"min_replicas": least, "max_replicas": most, "concurrency": 1}
    return {"source": {"kind": "simulated"}, "engine": "simulated", "engine_args": args, **bounds}


def states(mesh: FoundedMesh, model: str) -> list[str]:
    return sorted(each["state"] for each in mesh.status()["replicas"] if each["model_name"] == model)


@pytest.mark.slow
@pytest.mark.sabotage("guards-hold-nothing")
def test_two_schedulers_and_two_reconcilers_decide_as_one_while_any_of_them_dies(mesh: FoundedMesh, tree: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"the seed of who dies: {seed}")
    chance = random.Random(seed)
    # given a model that grows as it is asked, and one that wants what is left
    mesh.deploy("busy", spec(1, 2)).raise_for_status()
    until("it serves", lambda: states(mesh, "busy") == ["ready"], 60)
    with Load(mesh, "busy") as load:
        until("it has grown", lambda: states(mesh, "busy") == ["ready"] * 2, 60)
        mesh.deploy("other", spec(1, 1)).raise_for_status()

        # when one of the four dies in each round, and what is wanted changes while it is dead
        for _ in range(ROUNDS):
            for number in range(CHANGES):
                want(mesh, 3 - number % 2)
            victim = chance.choice(DECIDERS)
            print(f"{victim} dies")
            mesh.kill(victim)
            # then the others do what is to be done
            want(mesh, 3)
            mesh.start(victim, tree)
            mesh.ready(victim)

    # and no request was lost
    assert {200} == set(load.statuses), load.refusals
    log = [recorded(event) for event in mesh.events()]
    # and each change that was asked for was answered once, and no revision came of it twice
    assert [] == twice([key for kind in (Fulfilled, Rejected) for key, _ in keyed(log, kind)])
    assert [] == twice([(key, fact.revision) for key, fact in keyed(log, SpecAccepted)])
    # and no device ever bore more than it has room for, and no replica arose or got its place twice
    assert overcommitted(log) == []
    assert [] == twice([id for fact in facts(log, Scaled) for id in fact.add])
    assert [] == twice([(key, fact.epoch) for key, fact in keyed(log, Placed)])
    # and the model was made larger once
    assert [(1, 2)] == [(fact.was, fact.replicas) for fact in facts(log, Sized)]
    # and whoever decided, it comes out again
    assert [] == places_again(log).mismatches
    again = replicas_again(log)
    assert [] == again.mismatches
    assert again.decisions["scaled"] >= ROUNDS * CHANGES
    # and they got in one another's way all the while, so that something was there to be kept right
    lost = {part: mesh.log(part).read_text().count("lost to another writer") for part in DECIDERS}
    assert lost["reconciler"] + lost["reconciler-2"]
    print(f"decisions lost to another writer: {lost}")
    print(f"decisions computed again: {dict(again.decisions)}; requests: {dict(load.statuses)}")


def want(mesh: FoundedMesh, replicas: int) -> None:
    """Another number of replicas, of which two have room. Waits until that is so."""
    numbers = {"min_replicas": replicas, "max_replicas": replicas}
    mesh.http.patch(f"{mesh.url()}/api/scheduling/other", json=numbers).raise_for_status()
    expected = ["ready"] * min(2, replicas) + ["unplaceable"] * (replicas - 2)
    until(f"there are {expected}", lambda: states(mesh, "other") == expected, 60)


def facts(log: list[Recorded], kind: type[Any]) -> list[Any]:
    return [fact for commit in log for fact in commit.facts if isinstance(fact, kind)]


def keyed(log: list[Recorded], kind: type[Any]) -> list[tuple[str, Any]]:
    return [(each.aggregate.key, fact) for each in log for fact in each.facts if isinstance(fact, kind)]


def twice(things: list[Any]) -> list[Any]:
    return [thing for thing, number in Counter(things).items() if number > 1]


def overcommitted(log: list[Recorded]) -> list[str]:
    """Each position at which more was claimed of a node's memory than there is room for on it."""
    fleet, found, most = Fleet(), list[str](), 0
    for commit in log:
        fleet.apply(commit)
        for id in fleet.nodes:
            for index, claimed in fleet.assigned(id).claims.items():
                most = max(most, claimed)
                if claimed > ROOM:
                    found.append(f"{claimed} bytes of device {index} of {id} at {commit.sequence}")
    assert most >= 2 * PART, "nothing was ever full"
    return found
