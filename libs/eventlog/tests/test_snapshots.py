"""Snapshots on a real server: a start needs only the tail, and whatever is wrong with a snapshot costs a replay."""

import asyncio
import copy
import dataclasses
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Recorded
from weft_contracts.facts import node
from weft_contracts.facts.fact import Voided
from weft_contracts.ids import CorrelationId, EventId, NodeId
from weft_contracts.subjects import Aggregate
from weft_contracts.topology import EVENTS, SNAPSHOTS
from weft_eventlog import EventLog, Projection, Snapshots, apply_topology
from weft_eventlog.snapshots import snapshots, version
from weft_eventlog.snapshots.mark import Head, Mark, Writing
from weft_eventlog.snapshots.store import Slot, SnapshotStore
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until

A = subjects.node(NodeId("n-a"))
CAUSE = Cause(CorrelationId("c"))
EVERY = 10


@dataclasses.dataclass
class Memory:
    """How many commits each aggregate has, and which events they were."""

    counts: dict[Aggregate, int] = dataclasses.field(default_factory=dict[Aggregate, int])
    seen: dict[EventId, int] = dataclasses.field(default_factory=dict[EventId, int])
    folded: int = dataclasses.field(default=0, compare=False)
    """Commits that this process folded itself."""

    def fold(self, commits: Sequence[Recorded]) -> None:
        for commit in commits:
            self.counts[commit.aggregate] = self.counts.get(commit.aggregate, 0) + 1
            self.seen[commit.event_id] = commit.sequence
            self.folded += 1


class Folder:
    """One process: a memory, its projection and its snapshots."""

    def __init__(self, client: Client, name: str = "fold", instance: str = "one") -> None:
        self.memory = Memory()
        self.store = SnapshotStore(client, "scheduler", name)
        self.snapshots = Snapshots(self.store, self.memory, instance=instance, every=EVERY)
        self.projection = Projection(
            EventLog(client, actor="test"), name=name, fold=self.memory.fold, snapshots=self.snapshots
        )
        self.due = 0
        """No snapshot is taken before this position is folded: what is appended at once may come in pieces."""

    @property
    def mark(self) -> Mark | None:
        return self.projection.mark if self.projection.position >= self.due else None

    async def written(self) -> int:
        """Wait for this process' next snapshot; its position."""
        before = self.snapshots.newest

        async def other() -> bool:
            return self.snapshots.newest is not before

        await until(other)
        assert self.snapshots.newest is not None
        return self.snapshots.newest.sequence


@asynccontextmanager
async def folding(folder: Folder, *, writes: bool = True) -> AsyncGenerator[Folder]:
    """Let it fold until the block's end, from when it has caught up on."""
    tasks = [asyncio.create_task(folder.projection.run())]
    if writes:
        tasks.append(asyncio.create_task(folder.snapshots.run(folder)))
    try:
        await asyncio.wait_for(folder.projection.caught_up.wait(), 30)
        yield folder
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_LOOK", 0.02)
    monkeypatch.setattr(snapshots, "_GAP", 0.0)
    monkeypatch.setattr(snapshots, "_SHARE", 0)
    monkeypatch.setattr(snapshots, "_ABANDONED", 0.5)


@pytest.fixture
async def client(mesh_server: MeshServer) -> Client:
    return await mesh_server.root()


@pytest.fixture
async def log(client: Client) -> EventLog:
    return EventLog(client, actor="test")


async def append(log: EventLog, times: int) -> int:
    commits = [Commit(subjects.node(NodeId(f"n-{n % 3}")), (node.Healthy(),), None, CAUSE) for n in range(times)]
    return (await log.append(*commits))[-1]


async def two_snapshots(client: Client, log: EventLog) -> tuple[int, int]:
    """A log with a snapshot in each slot and three commits behind them; their positions."""
    folder = Folder(client)
    folder.due = await append(log, 25)
    async with folding(folder):
        first = await folder.written()
        folder.due += 25
        await append(log, 25)
        second = await folder.written()
    await append(log, 3)
    return first, second


async def whole(client: Client) -> Memory:
    """What the whole log says."""
    folder = Folder(client, name="whole")
    async with folding(folder, writes=False):
        return folder.memory


async def started(client: Client, **options: Any) -> tuple[int, Memory, list[str]]:
    """A new process: where it went on from, what it knows, and why it dropped snapshots."""
    with capture_logs() as logs:
        async with folding(Folder(client, **options), writes=False) as folder:
            begun = folder.snapshots.start
    dropped = [line["why"] for line in logs if line["event"] in ("snapshot dropped", "snapshots can't be read")]
    return (begun.sequence if begun else 0), folder.memory, dropped


async def test_a_start_goes_on_from_the_newest_snapshot_and_folds_only_the_tail(client: Client, log: EventLog) -> None:
    first, second = await two_snapshots(client, log)
    assert (25, 50) == (first, second)
    begun, memory, dropped = await started(client)
    assert (second, 3, []) == (begun, memory.folded, dropped)
    assert await whole(client) == memory


async def test_what_a_fold_remembered_earlier_is_had_from_the_last_snapshot_that_is_not_behind_a_place(
    client: Client, log: EventLog
) -> None:
    # given a process that goes on, and snapshots of two places
    first, second = await two_snapshots(client, log)
    async with folding(Folder(client), writes=False) as folder:
        now = copy.deepcopy(folder.memory)

        async def earlier(position: int) -> tuple[int | None, int]:
            """Where the memory stands, and the last commit that it knows."""
            memory = Memory()
            mark = await folder.snapshots.earlier(log, position, memory)
            return mark and mark.sequence, max(memory.seen.values(), default=0)

        # then any place is answered from the last of them before it, and none before the first
        assert [(second, second)] * 2 == [await earlier(second + 2), await earlier(second)]
        assert [(first, first)] * 2 == [await earlier(second - 1), await earlier(first)]
        assert (None, 0) == await earlier(first - 1)
        # and a broken one is passed over
        slot = max(await folder.store.slots(), key=lambda each: each.revision)
        assert isinstance(slot.holds, Head)
        await missing_piece(client, slot, slot.holds)
        assert (first, first) == await earlier(second + 2)
        # and what the process itself remembers stays as it is
        assert now == folder.memory


async def test_no_snapshot_is_written_before_one_is_due_and_no_more_than_two_are_kept(
    client: Client, log: EventLog
) -> None:
    await append(log, EVERY - 1)
    async with folding(Folder(client)) as folder:
        await asyncio.sleep(0.3)
        assert folder.snapshots.newest is None
        for _ in range(5):
            await append(log, EVERY)
            await folder.written()
    js = client.jetstream(timeout=30)
    subjects_info = await js.stream_info(SNAPSHOTS.name, subjects_filter="weft.snapshot.>")
    assert {"a", "b"} == {subject.split(".")[4] for subject in subjects_info.state.subjects or {}}
    assert 4 == subjects_info.state.messages


async def test_two_instances_write_one_snapshot_between_them(
    client: Client, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_ABANDONED", 60.0)  # on a slow machine, too, who writes has the time for it
    one, other = Folder(client, instance="one"), Folder(client, instance="two")
    async with folding(one), folding(other):
        for times in range(1, 6):
            last = await append(log, EVERY)

            async def both(last: int = last) -> bool:
                return all(each.snapshots._last == last for each in (one, other))

            await until(both)
            heads = [slot.holds for slot in await one.store.slots() if isinstance(slot.holds, Head)]
            assert last == max(head.sequence for head in heads)
            assert min(times, 2) == len(heads)
    assert await whole(client) == one.memory == other.memory


async def test_a_suspect_is_still_one_after_a_start_from_a_snapshot_until_it_is_voided(
    client: Client, log: EventLog
) -> None:
    ack = await client.jetstream(timeout=30).publish(A.subject("healthy"), b"not json")
    await append(log, 20)
    async with folding(Folder(client)) as folder:
        await folder.written()
    restarted = Folder(client)
    async with folding(restarted):
        assert ack.seq < restarted.snapshots._last
        assert [A] == [*restarted.projection.suspects]
        await log.append(Commit(A, (Voided(sequence=ack.seq, why="test"),), None, CAUSE))

        async def none() -> bool:
            return not restarted.projection.suspects

        await until(none)


async def test_a_halted_fold_writes_no_snapshot(client: Client, log: EventLog) -> None:
    await client.jetstream(timeout=30).publish(A.subject("sang"), b'[{"type":"sang","v":1}]')
    await append(log, 20)
    async with folding(Folder(client)) as folder:
        assert folder.projection.halted is not None
        await asyncio.sleep(0.3)
        assert folder.snapshots.newest is None


# what is wrong with a snapshot

Damage = Callable[[Client, Slot, Head], Any]


async def _put(client: Client, slot: str, part: str, body: bytes) -> None:
    await client.jetstream(timeout=30).publish(f"{subjects.snapshot('scheduler', 'fold', slot)}.{part}", body)


async def _resealed(client: Client, slot: Slot, head: Head, **changes: Any) -> None:
    """The same content under a head that says something else, and whose digest is right."""
    store = SnapshotStore(client, "scheduler", "fold")
    pieces = await store.pieces(slot.name, head)
    await _put(client, slot.name, "head", head.model_copy(update=changes).sealed(pieces).model_dump_json().encode())


async def turned_byte(client: Client, slot: Slot, head: Head) -> None:
    piece = (await SnapshotStore(client, "scheduler", "fold").pieces(slot.name, head))[0]
    await _put(client, slot.name, "0", piece[:20] + bytes([piece[20] ^ 1]) + piece[21:])


async def cut_piece(client: Client, slot: Slot, head: Head) -> None:
    piece = (await SnapshotStore(client, "scheduler", "fold").pieces(slot.name, head))[0]
    await _put(client, slot.name, "0", piece[:-1])


async def missing_piece(client: Client, slot: Slot, head: Head) -> None:
    await _resealed(client, slot, head, chunks=2)


async def unfinished(client: Client, slot: Slot, head: Head) -> None:
    await _put(client, slot.name, "head", Writing(instance="crashed").model_dump_json().encode())


async def head_of_garbage(client: Client, slot: Slot, head: Head) -> None:
    await _put(client, slot.name, "head", b"\x00garbage")


async def head_that_lies(client: Client, slot: Slot, head: Head) -> None:
    lie = head.model_copy(update={"sequence": head.sequence - 1})
    await _put(client, slot.name, "head", lie.model_dump_json().encode())


async def other_stream(client: Client, slot: Slot, head: Head) -> None:
    await _resealed(client, slot, head, identity="2020-01-01")


async def too_new(client: Client, slot: Slot, head: Head) -> None:
    await _resealed(client, slot, head, sequence=head.sequence + 1_000_000)


async def other_event(client: Client, slot: Slot, head: Head) -> None:
    await _resealed(client, slot, head, event_id=EventId("0" * 32))


async def foreign_fold(client: Client, slot: Slot, head: Head) -> None:
    await _resealed(client, slot, head, service="registry")


async def other_format(client: Client, slot: Slot, head: Head) -> None:
    await _resealed(client, slot, head, format=2)


async def other_code(client: Client, slot: Slot, head: Head) -> None:
    await _resealed(client, slot, head, version="0" * 32)


async def no_compression(client: Client, slot: Slot, head: Head) -> None:
    await _put(client, slot.name, "0", b"plain")
    await _resealed(client, slot, head, packed=5)


DAMAGES: list[tuple[Damage, str]] = [
    (turned_byte, "not what its blake3 says"),
    (cut_piece, "not what its blake3 says"),
    (missing_piece, "1 of its 2 pieces are missing"),
    (unfinished, "not finished by crashed"),
    (head_of_garbage, "its head can't be read"),
    (head_that_lies, "event stands at"),
    (other_stream, "of another stream"),
    (too_new, "the log was rewound"),
    (other_event, "another event stands at"),
    (foreign_fold, "it is of registry's fold fold"),
    (other_format, "its format is 2"),
    (other_code, "made by other code"),
    (no_compression, "can't be unpacked"),
]


@pytest.mark.parametrize(("damage", "why"), DAMAGES, ids=[each.__name__ for each, _ in DAMAGES])
async def test_a_snapshot_that_is_not_right_is_dropped_and_the_mesh_is_the_same(
    client: Client, log: EventLog, damage: Damage, why: str
) -> None:
    # given
    first, second = await two_snapshots(client, log)
    expected = await whole(client)
    slots = sorted(
        await SnapshotStore(client, "scheduler", "fold").slots(), key=lambda slot: getattr(slot.holds, "sequence", 0)
    )
    assert [first, second] == [getattr(slot.holds, "sequence", 0) for slot in slots]
    # when the newer one is damaged, the older one serves
    newer, older = slots[1], slots[0]
    assert isinstance(newer.holds, Head)
    assert isinstance(older.holds, Head)
    await damage(client, newer, newer.holds)
    begun, memory, dropped = await started(client)
    assert (first, expected) == (begun, memory)
    assert 1 == len(dropped)
    assert why in dropped[0]
    # when both are, the whole log is folded
    await damage(client, older, older.holds)
    begun, memory, dropped = await started(client)
    assert (0, expected) == (begun, memory)
    assert [True, True] == [why in each for each in dropped]
    # and the next snapshot serves again
    folder = Folder(client)
    folder.due = await log.head()
    async with folding(folder):
        last = await folder.written()
    assert (last, expected) == (await started(client))[:2]


async def test_a_fold_of_other_code_takes_no_snapshot_up(
    client: Client, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_snapshots(client, log)
    made_by = version.fold_version(Memory)
    assert made_by is not None

    def other(memory: type) -> str:
        return made_by[::-1]

    monkeypatch.setattr(snapshots, "fold_version", other)
    begun, memory, dropped = await started(client)
    assert (0, 53) == (begun, memory.folded)
    assert all("other code" in why for why in dropped)


async def test_a_log_that_was_made_anew_takes_no_snapshot_of_the_old_one_up(client: Client, log: EventLog) -> None:
    await two_snapshots(client, log)
    await client.jetstream(timeout=30).delete_stream(EVENTS.name)
    await apply_topology(client)
    await append(log, 60)
    begun, memory, dropped = await started(client)
    assert (0, 60) == (begun, memory.folded)
    assert all("another stream" in why for why in dropped)
    # and its own snapshots take the old ones' places, the newest of them last
    folder = Folder(client)
    folder.due = await log.head()
    async with folding(folder):
        first = await folder.written()
        await append(log, EVERY)
        second = await folder.written()
    found = [slot.holds.sequence for slot in await folder.store.slots() if isinstance(slot.holds, Head)]
    assert {first, second} == set(found)


async def test_without_a_store_the_log_is_folded_from_its_beginning(client: Client, log: EventLog) -> None:
    await two_snapshots(client, log)
    await client.jetstream(timeout=30).delete_stream(SNAPSHOTS.name)
    begun, memory, dropped = await started(client)
    assert (0, 53, []) == (begun, memory.folded, dropped)


async def test_a_snapshot_is_of_one_place_however_fast_the_log_grows(client: Client, log: EventLog) -> None:
    """The copy is taken between two batches, and what is folded while it is written stays out of it."""
    enough = asyncio.Event()
    growing = asyncio.create_task(_grow(log, enough))
    async with folding(Folder(client)) as folder:
        for _ in range(10):
            position = await folder.written()
            restarted = Folder(client)
            mark = await restarted.snapshots.take_up(EventLog(client, actor="test"))
            assert mark is not None
            assert position <= mark.sequence
            assert mark.sequence == sum(restarted.memory.counts.values())
            assert mark.sequence == max(restarted.memory.seen.values()) == restarted.memory.seen[mark.event_id]
        enough.set()
        await growing


async def _grow(log: EventLog, enough: asyncio.Event) -> None:
    while not enough.is_set():
        await append(log, EVERY)
