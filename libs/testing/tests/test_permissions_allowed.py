"""All that a party does is allowed: each of its facts, its lease, its signals, its stores, its part of the log."""

import asyncio
import json
import os
from itertools import count
from typing import Any

import pytest
from weft_contracts import catalogue, secrets, subjects
from weft_contracts.commit import Cause, Commit, Guard, Recorded
from weft_contracts.facts import artifact, run
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.replica import Evicted
from weft_contracts.facts.request import Fulfilled
from weft_contracts.facts.values import MetadataFile
from weft_contracts.ids import (
    ArtifactId,
    CorrelationId,
    EventId,
    Incarnation,
    ModelId,
    NodeId,
    ReplicaId,
    RequestId,
)
from weft_contracts.topology import LEASES, TIMERS, Durable, worker_durable
from weft_eventlog import Conflict, EventLog, Projection, WorkerLog, apply_durable, apply_topology, blobs
from weft_eventlog.credentials import get_credential, put_credential
from weft_eventlog.sealed_secrets import erase_sealed, get_sealed, put_sealed, sealed_keys
from weft_eventlog.snapshots.mark import Head
from weft_eventlog.snapshots.store import SnapshotStore
from weft_runtime.leadership import Leadership
from weft_testing.flushed import flushed
from weft_testing.mesh_server import MeshServer
from weft_testing.stored_blob import stored_blob
from weft_testing.waiting import until

ONE = NodeId("n-one")
CAUSE = Cause(CorrelationId("c"))
_fresh = count()


def fresh() -> RequestId:
    return RequestId(f"q-{os.getpid()}-{next(_fresh)}")


def one_of(name: catalogue.Writer) -> tuple[subjects.Aggregate, Fact]:
    """A fact that a service may write, and a fresh aggregate for it."""
    match name:
        case "scheduler":
            return subjects.replica(ReplicaId(f"m-{fresh()}")), Evicted(why="")
        case "metadata-cache":
            file = MetadataFile(name="card.json", size=1, blake3="00")
            return subjects.artifact(ArtifactId(fresh())), artifact.Verified(
                model=ModelId("m-1"), revision=1, file=file
            )
        case _:
            return subjects.request(fresh()), Fulfilled()


def subject_of(entry: catalogue.Entry, node: NodeId = ONE) -> str:
    """A subject of this fact: of this node where it names one."""
    key = f"{node}.x-1" if entry.kind in ("run", "inspection") else node
    return subjects.Aggregate(entry.kind, key).subject(entry.type)


@pytest.fixture(autouse=True)
def nothing_is_denied(mesh: MeshServer) -> Any:
    yield
    assert [] == mesh.errors


@pytest.mark.parametrize("name", catalogue.SERVICES)
async def test_a_service_appends_each_of_its_facts(mesh: MeshServer, name: catalogue.Writer) -> None:
    js = (await mesh.service(name)).jetstream(timeout=30)
    for entry in catalogue.written_by(name):
        assert "EVENTS" == (await js.publish(subject_of(entry), b"[]")).stream


@pytest.mark.parametrize("name", catalogue.SERVICES)
async def test_a_service_appends_under_guards_loses_and_finds_its_retries(
    mesh: MeshServer, name: catalogue.Writer
) -> None:
    log = EventLog(await mesh.service(name), actor=name)
    (one, fact), (two, _) = one_of(name), one_of(name)
    batch = [Commit(each, (fact,), Guard(each, 0), CAUSE) for each in (one, two)]
    first, second = await log.append(*batch)
    assert first + 1 == second
    with pytest.raises(Conflict):
        await log.append(Commit(one, (fact,), Guard(one, 0), CAUSE))
    assert await log.event_id_at(first)
    assert [first, second] == [r.sequence async for r in log.read(one.filter, two.filter)]


@pytest.mark.parametrize("name", catalogue.SERVICES)
async def test_a_service_folds_the_whole_log_and_parts_of_it(mesh: MeshServer, name: catalogue.Writer) -> None:
    log = EventLog(await mesh.service(name), actor=name)
    aggregate, fact = one_of(name)
    (last,) = await log.append(Commit(aggregate, (fact,), Guard(aggregate, 0), CAUSE))
    for filters in (("weft.ev.>",), (subjects.kind_filter(aggregate.kind), subjects.kind_filter("node"))):
        folded: list[Recorded] = []
        projection = Projection(log, name="test", filters=filters, fold=folded.extend)
        running = asyncio.create_task(projection.run())
        await projection.wait_for(last, timeout=30)
        running.cancel()
        assert last in [commit.sequence for commit in folded]


@pytest.mark.parametrize("name", catalogue.SERVICES)
async def test_a_service_holds_its_lease_and_lets_go_of_it(mesh: MeshServer, name: catalogue.Writer) -> None:
    client = await mesh.service(name)
    leadership = Leadership(client, name, f"{name}-a")
    running = asyncio.create_task(leadership.run())

    async def leads() -> bool:
        return leadership.held

    await until(leads)
    await leadership.release()
    running.cancel()
    last = await client.jetstream(timeout=30).get_last_msg(LEASES.name, subjects.service_lease(name))
    assert b'{"holder":""}' == last.data
    await client.publish(subjects.service_lease(f"{name}.{name}-a"), b"")
    await flushed(client)


@pytest.mark.parametrize("name", catalogue.SERVICES)
async def test_a_service_signals_hears_signals_and_leases_and_sets_its_timers(
    mesh: MeshServer, name: catalogue.Writer
) -> None:
    # given
    client = await mesh.service(name)
    signals = await client.subscribe("weft.sig.>")
    leases = await client.subscribe("weft.lease.node.*")
    await flushed(client)
    js = client.jetstream(timeout=30)
    # when
    root = await mesh.root()
    await root.publish(subjects.node_signal(ONE, "load"), b"{}")
    await root.publish(subjects.node_lease(ONE), b"{}")
    await client.publish(f"weft.sig.service.{name}.demand", b"{}")
    due = {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": f"weft.timer.{name}.rang"}
    ack = await js.publish(f"weft.timer.{name}.set", b"{}", headers=due)
    timers = await js.subscribe(f"weft.timer.{name}.rang", stream=TIMERS.name, ordered_consumer=True)
    # then
    assert TIMERS.name == ack.stream
    heard = {(await signals.next_msg(30)).subject for _ in range(2)}
    assert {subjects.node_signal(ONE, "load"), f"weft.sig.service.{name}.demand"} == heard
    assert subjects.node_lease(ONE) == (await leases.next_msg(30)).subject
    assert f"weft.timer.{name}.rang" == (await timers.next_msg(30)).subject


@pytest.mark.parametrize("name", catalogue.SERVICES)
async def test_any_service_may_apply_the_topology(mesh: MeshServer, name: catalogue.Writer) -> None:
    await apply_topology(await mesh.service(name))


async def test_the_registry_makes_durables_and_lays_out_credentials_which_the_gateway_hands_out(
    mesh: MeshServer,
) -> None:
    registry, gateway = await mesh.service("registry"), await mesh.service("gateway")
    assert await get_credential(gateway, ONE) is None
    await apply_durable(registry, worker_durable(ONE))
    await apply_durable(registry, Durable("node-n-new", ("weft.ev.node.n-new.>",)))
    await put_credential(registry, ONE, b"{}")
    assert (b"{}", b"{}") == (await get_credential(registry, ONE), await get_credential(gateway, ONE))
    await registry.jetstream(timeout=30).delete_consumer("EVENTS", "node-n-new")


async def test_the_metadata_cache_stores_files_which_the_gateway_reads(mesh: MeshServer) -> None:
    cache, gateway = await mesh.service("metadata-cache"), await mesh.service("gateway")
    data = os.urandom(200_000)
    await blobs.put(cache, "some-blake3", data)
    await blobs.put(cache, "some-blake3", data)
    for reader in (cache, gateway):
        assert data == await stored_blob(reader, "some-blake3")
    assert await stored_blob(gateway, "another") is None


async def test_the_gateway_keeps_names_of_people_and_settles_usage(mesh: MeshServer) -> None:
    js = (await mesh.service("gateway")).jetstream(timeout=30)
    people = await js.key_value("people")
    await people.put("k-1", b"Ada")
    assert b"Ada" == (await people.get("k-1")).value
    await people.purge("k-1")
    assert "USAGE" == (await js.publish("weft.usage.k-1", b"{}")).stream


async def test_the_gateway_lays_out_what_is_sealed_and_the_registry_makes_copies_of_it_and_erases(
    mesh: MeshServer,
) -> None:
    registry, gateway = await mesh.service("registry"), await mesh.service("gateway")
    value, copy = secrets.sealed_key("0" * 32), secrets.copy_key(ONE, "key", 7)
    await put_sealed(registry, secrets.KEY, b"key")
    await put_sealed(gateway, value, b"sealed")
    assert (b"key", b"sealed") == (await get_sealed(gateway, secrets.KEY), await get_sealed(registry, value))
    await put_sealed(registry, copy, b"copy")
    assert b"copy" == await get_sealed(gateway, copy)
    assert {secrets.KEY, value, copy} == await sealed_keys(registry)
    await erase_sealed(registry, value)
    await erase_sealed(registry, copy)
    assert {secrets.KEY} == await sealed_keys(registry)
    assert await get_sealed(gateway, copy) is None


@pytest.mark.parametrize("name", catalogue.SERVICES)
async def test_a_service_writes_its_own_snapshots_and_reads_them(mesh: MeshServer, name: catalogue.Writer) -> None:
    store = SnapshotStore(await mesh.service(name), name, "fold")
    pieces = [os.urandom(1000), os.urandom(100)]
    head = Head(
        service=name,
        fold="fold",
        version="v",
        identity="i",
        sequence=1,
        event_id=EventId("e"),
        made_at=0.0,
        chunks=2,
        packed=1100,
        unpacked=1100,
        blake3="",
    ).sealed(pieces)
    await store.write((await store.slots())[0], "test", head, pieces)
    slot = (await store.slots())[0]
    assert (head, pieces) == (slot.holds, await store.pieces(slot.name, head))


# a worker


async def test_a_worker_appends_each_of_its_facts(mesh: MeshServer) -> None:
    worker = await mesh.worker(ONE)
    for entry in catalogue.written_by("worker"):
        ack = json.loads((await worker.request(subject_of(entry), b"[]", timeout=30)).data)
        assert "EVENTS" == ack["stream"]


async def test_a_worker_appends_under_guards_loses_and_folds_its_own_part_twice(mesh: MeshServer) -> None:
    # given
    root = EventLog(await mesh.root(), actor="root")
    mine = subjects.run(ONE, ReplicaId(f"m-{fresh()}-1"))
    loading = Commit(mine, (run.Loading(epoch=1, incarnation=Incarnation("i")),), Guard(mine, 0), CAUSE)
    sequence = 0
    for attempt in range(2):
        log, folded = WorkerLog(await mesh.worker(ONE), ONE), list[Recorded]()
        folding = asyncio.create_task(log.run(folded.append))
        await asyncio.wait_for(log.caught_up.wait(), 30)
        # when
        if attempt == 0:
            sequence = await log.append(loading)
            with pytest.raises(Conflict):
                await log.append(loading)
        head = (await root.append(Commit(mine, (run.Stopping(epoch=1, incarnation=Incarnation("i")),), None, CAUSE)))[0]

        # then
        async def came(log: WorkerLog = log, head: int = head) -> bool:
            return log.position >= head

        await until(came)
        folding.cancel()
        assert sequence in [commit.sequence for commit in folded]


async def test_a_worker_holds_its_lease_and_signals_its_load(mesh: MeshServer) -> None:
    root = await mesh.root()
    heard = await root.subscribe("weft.*.node.n-one.>")
    leases = await root.subscribe("weft.lease.node.n-one")
    await flushed(root)
    worker = await mesh.worker(ONE)
    await worker.publish(subjects.node_lease(ONE), b"{}")
    await worker.publish(subjects.node_signal(ONE, "load"), b"{}")
    await flushed(worker)
    assert (b"{}", b"{}") == ((await leases.next_msg(30)).data, (await heard.next_msg(30)).data)
