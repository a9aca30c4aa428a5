"""A mesh with a history is started again: its services go on from snapshots, and decide as if there were none."""

import asyncio
import json
import shutil
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from nats.aio.client import Client
from weft_contracts import permissions
from weft_contracts.catalogue import SERVICES, Writer
from weft_contracts.commit import Recorded
from weft_eventlog import EventLog
from weft_eventlog.snapshots.mark import Head
from weft_eventlog.snapshots.store import Slot, SnapshotStore
from weft_fleet import Fleet, digest_of
from weft_metadata_cache.domain.due_fetches import State as Cached
from weft_reconciler.domain.state import State as Reconciled
from weft_registry.domain.state import RegistryState
from weft_runtime.connection import connect, read_credentials
from weft_testing.story import MeshUnderTest, until

from .test_rebuilt import at_rest, projection

SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}
NAMES = {each: each for each in SERVICES} | {"gateway": "directory"}
"""What each service calls its fold."""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh that has lived, and takes a snapshot every five commits: a model serves, one is gone, one has no place."""
    with MeshUnderTest(tmp_path_factory.mktemp("lived"), WEFT_SNAPSHOT_EVERY="5") as mesh:
        mesh.deploy("kept", SIMULATED).raise_for_status()
        mesh.deploy("gone", SIMULATED).raise_for_status()
        mesh.deploy("whale", {**SIMULATED, "engine_args": {"memory_bytes": 1 << 50}}).raise_for_status()
        until("both serve", lambda: mesh.ready_replicas("gone") and mesh.ready_replicas("kept"), 60)
        mesh.http.delete(f"{mesh.url}/api/models/gone").raise_for_status()
        until("one is unplaceable", lambda: mesh.facts("replica", "unplaceable"))
        until("the deleted model's run has stopped", lambda: mesh.facts("run", "stopped"), 60)
        yield mesh


def snapshots(mesh: MeshUnderTest, service: str) -> dict[str, int]:
    """Where a service's fold went on from, and the last snapshot that it wrote."""
    return projection(mesh, service)["snapshots"]


def written(mesh: MeshUnderTest) -> int:
    """The log's end, once every fold stands there and has a snapshot that is fewer than five commits behind."""

    def done() -> int | None:
        head = at_rest(mesh)
        newest = [max(snapshots(mesh, each).values()) for each in SERVICES]
        return head if min(newest) > head - 5 else None

    return until("every fold has its snapshot", done, 60)


def started_anew(mesh: MeshUnderTest) -> None:
    """Kill every service's process, and wait for the next ones."""
    for each in SERVICES:
        pid = mesh.kill(each)
        until(f"{each} is back", lambda each=each, pid=pid: mesh.part(each)["pid"] not in (None, pid), 30)
    for each in SERVICES:
        until(f"{each} is ready", lambda each=each: mesh.part(each)["state"] == "ready", 60)


def said(mesh: MeshUnderTest, service: str, event: str) -> list[dict[str, Any]]:
    """Lines of a service's log with an event, all of its lives together."""
    lines = (mesh.state / "logs" / f"{service}.log").read_text().splitlines()
    found = [cast("dict[str, Any]", json.loads(line)) for line in lines if line.startswith("{")]
    return [line for line in found if line.get("event") == event]


def folded_here(service: str, commits: Sequence[Recorded]) -> str:
    """The digest of what a service must remember of these commits, folded in this process from the first one on."""
    state: Any = {"registry": RegistryState, "reconciler": Reconciled, "metadata-cache": Cached}.get(service, Fleet)()
    for commit in commits:
        state.apply(commit)
    return digest_of(state)


def remembers_what_the_log_says(mesh: MeshUnderTest) -> None:
    """Hold every service's memory against the log up to where it stands, whatever the mesh says meanwhile."""
    found = {each: projection(mesh, each) for each in SERVICES}

    async def log() -> list[Recorded]:
        client = await connected(mesh, "scheduler")
        try:
            return [commit async for commit in EventLog(client, actor="story").read()]
        finally:
            await client.close()

    commits = asyncio.run(log())
    for each, shown in found.items():
        upto = [commit for commit in commits if commit.sequence <= shown["position"]]
        assert folded_here(each, upto) == shown["digest"], each


async def connected(mesh: MeshUnderTest, service: Writer) -> Client:
    """The log's server, with a service's own rights."""
    token, seed = read_credentials(mesh.state / "credentials" / f"{service}.creds")
    url = f"nats://127.0.0.1:{json.loads((mesh.state / 'ports.json').read_text())['nats']}"
    inbox = permissions.service(service).inbox
    return await asyncio.wait_for(connect(url, jwt=token, seed=seed, inbox=inbox, name="story"), 30)


def serves_as_before(mesh: MeshUnderTest, name: str) -> None:
    """What there was is there and answers, what waits still waits, and the next decision is right."""
    until("the models serve", lambda: mesh.ready_replicas() and mesh.ready_replicas("kept"), 60)
    assert "Paris" in mesh.ask()
    states = {replica["model_name"]: replica["state"] for replica in mesh.replicas() if replica["wanted"]}
    assert "unplaceable" == states["whale"]
    assert "gone" not in states
    # a name that is taken stays taken: the answer is a new revision of the same model
    before = {model["name"]: model["id"] for model in mesh.status()["models"]}
    mesh.deploy(name, SIMULATED).raise_for_status()
    until(f"{name} serves", lambda: mesh.ready_replicas(name), 60)
    mesh.http.delete(f"{mesh.url}/api/models/{name}").raise_for_status()
    after = {model["name"]: model["id"] for model in mesh.status()["models"]}
    assert before.items() <= after.items()
    until("it has stopped", lambda: not [r for r in mesh.replicas() if r["model_name"] == name and r["wanted"]], 60)


@pytest.mark.slow
@pytest.mark.sabotage("private-forgotten")
def test_every_fold_made_again_from_its_snapshot_equals_what_it_was(lived: MeshUnderTest) -> None:
    # given
    head = written(lived)
    # when every service's process, and with it its memory, is thrown away
    started_anew(lived)
    # then each goes on from its snapshot, and remembers what the whole log says
    for each in SERVICES:
        assert head - 5 < snapshots(lived, each)["start"], each
    remembers_what_the_log_says(lived)


@pytest.mark.slow
@pytest.mark.sabotage("deaf-to-snapshots")
def test_services_start_from_their_snapshots_and_the_next_decisions_are_right(lived: MeshUnderTest) -> None:
    # given
    head = written(lived)
    # when all is stopped in order and started again
    lived.down()
    lived.up()
    # then each says from where it went on, and how old that was
    for each in SERVICES:
        start = snapshots(lived, each)["start"]
        assert head - 5 < start, each
        (line,) = [line for line in said(lived, each, "starts from a snapshot") if line["position"] == start][-1:]
        assert 0 <= line["age_s"] < 3600
        assert 0 <= line["behind"]
        shown = lived.http.get(f"http://127.0.0.1:{lived.part(each)['port']}/metrics").text
        assert f'weft_snapshot_start_position{{fold="{NAMES[each]}"}}' in shown
    # and the mesh goes on
    serves_as_before(lived, "next")


Damage = Callable[[Client, SnapshotStore, Slot, Head], Awaitable[None]]


def damaged(mesh: MeshUnderTest, damage: Damage) -> None:
    """Do something to every snapshot of every service, with the service's own rights."""

    async def all_of_them() -> None:
        for each in SERVICES:
            client = await connected(mesh, each)
            store = SnapshotStore(client, each, NAMES[each])
            for slot in await store.slots():
                if isinstance(slot.holds, Head):
                    await damage(client, store, slot, slot.holds)
            await client.close()

    asyncio.run(all_of_them())


async def forged(client: Client, store: SnapshotStore, slot: Slot, head: Head) -> None:
    """Another content of the same size: the node `worker-1` has become `worker-9`."""
    content = zlib.decompress(b"".join(await store.pieces(slot.name, head)))
    assert b'"worker-1"' in content
    piece = zlib.compress(content.replace(b'"worker-1"', b'"worker-9"'), 1)
    await client.jetstream(timeout=30).publish(store._subject(slot.name, "0"), piece)


async def cut_off(client: Client, store: SnapshotStore, slot: Slot, head: Head) -> None:
    """As a crash in the midst of a piece would leave it."""
    piece = (await store.pieces(slot.name, head))[0]
    await client.jetstream(timeout=30).publish(store._subject(slot.name, "0"), piece[: len(piece) // 2])


@pytest.mark.slow
@pytest.mark.sabotage("trusting-snapshot")
def test_snapshots_changed_by_hand_are_dropped_and_the_mesh_is_the_same(lived: MeshUnderTest) -> None:
    # given
    written(lived)
    dropped = {each: len(said(lived, each, "snapshot dropped")) for each in SERVICES}
    # when
    damaged(lived, forged)
    started_anew(lived)
    # then each has said so, and remembers what the whole log says
    remembers_what_the_log_says(lived)
    for each in SERVICES:
        assert 0 == snapshots(lived, each)["start"], each
        assert dropped[each] < len(said(lived, each, "snapshot dropped")), each


@pytest.mark.slow
@pytest.mark.sabotage("no-start-without")
def test_snapshots_thrown_away_or_cut_off_while_all_is_stopped_cost_nothing_but_time(lived: MeshUnderTest) -> None:
    # given pieces that are cut off
    end = written(lived)
    damaged(lived, cut_off)
    lived.down()
    lived.up()
    # then none is started from; what a stop says may have been the fifth commit for one, which wrote a whole one
    starts = {snapshots(lived, each)["start"] for each in SERVICES}
    assert 0 in starts
    assert not [each for each in starts if 0 < each <= end]
    serves_as_before(lived, "after-cut")
    # when the store is thrown away
    written(lived)
    lived.down()
    (store,) = Path(lived.state).rglob("SNAPSHOTS")
    shutil.rmtree(store)
    lived.up()
    # then the mesh is the same, and has new snapshots
    assert {0} == {snapshots(lived, each)["start"] for each in SERVICES}
    serves_as_before(lived, "after-loss")
    written(lived)
