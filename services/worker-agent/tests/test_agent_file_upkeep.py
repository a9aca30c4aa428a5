"""Models' files that a node is to have ahead of need: which are fetched and when, what is told, and which go."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import cast

import pytest
import weft_tiny
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.digest import files_digest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FilesCame, FilesFailed
from weft_contracts.facts.node import FilesRetired, FilesWanted
from weft_contracts.facts.source import HfSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.file_wishes import FileWishes, after_files_failed, after_files_wanted
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.signals import NO_REPLICA
from weft_files import Bounds, Store
from weft_sources.environment import source_settings
from weft_sources.listing import list_source
from weft_testing import HandLog
from weft_testing.hub_server import HubServer, hub_server
from weft_worker_agent.domain.file_upkeep import (
    FetchTries,
    after_failed_fetch,
    fetches_of,
    leaving,
    next_fetch,
    untold_failure,
)
from weft_worker_agent.inbound import files_loop
from weft_worker_agent.inbound.files_loop import FilesLoop
from weft_worker_agent.outbound.files.begun_ahead import BegunAhead
from weft_worker_agent.outbound.files.model_fetches import ModelFetches
from weft_worker_agent.outbound.files.node_files import NodeFiles
from weft_worker_agent.outbound.files.source_secrets import SourceSecrets
from weft_worker_agent.projections.own_log import OwnLog

WANTED = FilesWanted(files="a", source=HfSource(repository="o/r"), listed=(), bytes=7)
WISHES = after_files_wanted(FileWishes(), WANTED)
REPLICA = ReplicaId("m-x-1")
GGUF = "tiny-F16.gguf"
SMALL = Bounds(piece=1 << 16, tries=2, look=0.02)


def test_what_is_wanted_is_fetched_at_once_and_after_a_failure_ever_later():
    tries = fetches_of(WISHES, {})
    waits: list[float] = []
    for _ in range(7):
        now = tries["a"].next_at
        assert tries["a"] == next_fetch(tries, (), now, 0)
        tries = {"a": after_failed_fetch(tries["a"], "the hub is away", 0, 1000.0)}
        waits.append(tries["a"].next_at - 1000.0)
        assert next_fetch(tries, (), tries["a"].next_at - 0.1, 0) is None
    assert [1.0, 4.0, 16.0, 64.0, 256.0, 300.0, 300.0] == waits
    assert next_fetch(tries, {"a"}, 1e9, 0) is None, "it is here"


def test_for_want_of_room_it_waits_for_room_too_and_others_go_first():
    full = after_failed_fetch(FetchTries(WANTED), "no room", 5_000, 0.0)
    assert [None, full] == [next_fetch({"a": full}, (), 1e6, free) for free in (4_999, 5_000)]
    other = FetchTries(WANTED.model_copy(update={"files": "b"}))
    assert other == next_fetch({"a": full, "b": other}, (), 1e6, 5_000)


@given(st.lists(st.text(min_size=1, max_size=3000), min_size=1, max_size=200))
def test_however_many_reasons_a_source_has_the_log_is_told_of_few(reasons: list[str]):
    tries, wishes, told = FetchTries(WANTED), WISHES, 0
    for reason in reasons:
        tries = after_failed_fetch(tries, reason, 0, 0.0)
        if (fact := untold_failure(wishes, {"a": tries})) is not None:
            told, wishes = told + 1, after_files_failed(wishes, fact)
        assert untold_failure(wishes, {"a": tries}) is None, "a reason is told once"
    assert 1 <= told <= len(reasons).bit_length()
    assert untold_failure(FileWishes(), {"a": tries}) is None, "of what is wanted no more nothing is said"


def test_what_is_asked_for_anew_is_tried_anew_and_what_is_wanted_no_more_is_forgotten():
    failed = {"a": after_failed_fetch(FetchTries(WANTED), "away", 0, 1000.0)}
    told = fetches_of(after_files_failed(WISHES, FilesFailed(files="a", reason="away")), failed)
    assert 1 == told["a"].failed
    assert 1 == fetches_of(WISHES, failed)["a"].failed, "the log doesn't know of it yet"
    assert {"a": FetchTries(WANTED)} == fetches_of(WISHES, told)
    assert {} == fetches_of(FileWishes(), told)


@pytest.mark.parametrize(("remove", "used", "goes"), [(True, (), True), (True, ("a",), False), (False, (), False)])
def test_files_go_when_they_are_to_and_nothing_uses_them(remove: bool, used: tuple[str, ...], goes: bool):
    assert (["a"] if goes else []) == leaving(FileWishes(retired={"a": remove, "b": True}), {"a": 7}, used)


@pytest.fixture
def hub() -> Generator[HubServer]:
    with hub_server() as server:
        yield server


class Place:
    """A node's store, its part of the log, and the loop over both."""

    def __init__(self, folder: Path, hub: HubServer, log: HandLog, node: NodeId) -> None:
        self.settings = source_settings(hub=hub.url, allow=("127.0.0.1",), environ={"HF_HUB_CACHE": "/nowhere"})
        secrets = SourceSecrets(self.settings)
        self.files = NodeFiles(folder, secrets, at_once=1, most_bytes=1, changed=lambda: None, bounds=SMALL)
        self.own = OwnLog()
        self.own.caught_up = True
        self.log = log
        log.listen(self.own.fold)
        self.node = node
        self.folder = folder
        self.used: set[str] = set()
        begun = BegunAhead(folder.parent / "ahead")
        self.loop = FilesLoop(self.own, self.files.fetches, lambda: self.used, lambda: None, begun)
        self._hub = hub

    @property
    def fetches(self) -> ModelFetches:
        return self.files.fetches

    def spec(self, name: str = "o/tiny", more: bytes = b"") -> ModelSpec:
        """A model of the hub as an accepted spec names it."""
        self._hub.repository(name, {GGUF: weft_tiny.gguf_path().read_bytes() + more})
        listing = list_source(HfSource(repository=name), ("gguf",), self.settings)
        return ModelSpec(source=listing.source, engine="llama.cpp", files=listing.files)

    def told(self, fact: Fact) -> None:
        about = subjects.node(self.node) if fact.kind == "node" else subjects.machine(self.node)
        self.log.given(about, fact)

    def want(self, spec: ModelSpec) -> str:
        files = files_digest(spec)
        size = sum(file.size for file in spec.files)
        source = cast(HfSource, spec.source)
        self.told(FilesWanted(files=files, source=source, listed=spec.files, bytes=size))
        return files

    async def until(self, seen: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not seen():
                await self.loop.turn()
                await asyncio.sleep(0.02)

    def report(self) -> None:
        """Tell the log what lies here, as the agent does."""
        for files, size in self.fetches.there.items():
            if files not in self.own.part.files:
                self.told(FilesCame(files=files, bytes=size))


@pytest.fixture
async def place(tmp_path: Path, hub: HubServer, hand_log: HandLog, node: NodeId) -> AsyncIterator[Place]:
    place = Place(tmp_path / "files", hub, hand_log, node)
    running = asyncio.create_task(place.loop.run())
    yield place
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await place.files.close()


async def test_files_come_ahead_of_need_and_stay_until_they_are_to_go_and_nothing_uses_them(place: Place):
    # given a model that the node is to have
    files = place.want(place.spec())
    await place.until(lambda: files in place.fetches.there)
    place.report()
    # when more lies here than may stay
    await place.fetches.collect(lambda: place.own.part.file_wishes.wanted)
    await place.until(lambda: (place.fetches.folder_of(files).parent.parent / "pins" / files).exists())
    await place.fetches.collect(tuple)
    # then it stays
    assert files in place.fetches.there
    assert (place.fetches.folder_of(files) / GGUF).is_file()
    # and what is to go stays while it is used
    place.used.add(files)
    place.told(FilesRetired(files=files, remove=True))
    await place.loop.turn()
    assert files in place.fetches.there
    assert not (place.fetches.folder_of(files).parent.parent / "pins" / files).exists()
    place.used.clear()
    await place.until(lambda: files not in place.fetches.there)
    assert not place.fetches.folder_of(files).exists()


async def test_why_files_do_not_come_is_said_and_they_come_when_they_can(place: Place, hub: HubServer):
    spec = place.spec()
    hub.broken = lambda path: 404 if path.startswith("/repos/") else 0
    files = place.want(spec)
    await place.until(place.loop.fault)
    fault = place.loop.fault()
    assert fault is not None
    assert (files, True) == (fault.files, "hf:o/tiny could not be fetched" in fault.reason)
    place.told(fault)
    assert place.loop.fault() is None
    hub.broken = lambda path: 0
    await place.until(lambda: files in place.fetches.there)


async def test_what_a_replica_waits_for_goes_before_what_is_fetched_ahead(place: Place, hub: HubServer):
    # given a hub that gives no weights of the model that is wanted ahead
    gate = threading.Event()
    ahead, needed = place.spec("o/ahead"), place.spec("o/needed", b"x")

    def waits(path: str) -> int:
        if path.startswith("/repos/o/ahead"):
            gate.wait(30)
        return 0

    hub.broken = waits
    files = place.want(ahead)
    await place.until(lambda: [each for each in place.fetches.said() if each.phase == "fetching"])
    (said,) = place.fetches.said()
    assert (NO_REPLICA, files) == (said.replica, said.files)
    # when a replica needs another, and one model is fetched at a time
    wanted = asyncio.create_task(place.fetches.want(needed, REPLICA))
    await place.until(wanted.done)
    # then that is here, and the other one comes after it
    assert (await wanted / GGUF).is_file()
    gate.set()
    await place.until(lambda: files in place.fetches.there)


async def test_a_fetch_is_called_off_when_its_files_are_wanted_no_more(place: Place, hub: HubServer):
    gate = threading.Event()

    def waits(path: str) -> int:
        if path.startswith("/repos/"):
            gate.wait(30)
        return 0

    hub.broken = waits
    files = place.want(place.spec())
    await place.until(place.fetches.said)
    place.told(FilesRetired(files=files, remove=True))
    await place.until(lambda: not place.fetches.said())
    gate.set()
    assert files not in place.fetches.there


class SlowHub:
    """Gives a MiB of each file, and no more until it is let."""

    def __init__(self, hub: HubServer) -> None:
        self.goes = threading.Event()
        hub.hold = lambda path, at: self.waits(at)

    def waits(self, at: int) -> None:
        if at > 0:
            self.goes.wait(30)


def pieces(place: Place) -> list[str]:
    """What came of files that are not here whole."""
    partial = place.fetches.folder_of("x").parent.parent / "partial"
    return sorted(path.suffix for path in partial.iterdir() if path.suffix != ".lock")


async def test_what_came_of_files_that_are_wanted_no_more_goes_and_not_what_another_wish_needs(
    place: Place, hub: HubServer
):
    # given a slow source, of which two wishes want the same file
    slow, more = SlowHub(hub), bytes(3 << 20)
    first, second = place.spec("o/first", more), place.spec("o/second", more)
    files = place.want(first)
    await place.until(lambda: [".journal", ".part"] == pieces(place))
    other = place.want(second)
    # when the first is wanted no more
    place.told(FilesRetired(files=files, remove=True))
    await place.until(lambda: [said.files for said in place.fetches.said()] == [other])
    # then its pieces are the other one's
    await place.until(lambda: [".journal", ".part"] == pieces(place))
    assert [other] == [path.stem for path in (place.folder.parent / "ahead").iterdir()]
    # and when nothing wants them, they go
    place.told(FilesRetired(files=other))
    await place.until(lambda: not pieces(place))
    await place.until(lambda: not [*(place.folder.parent / "ahead").iterdir()])
    slow.goes.set()
    assert not place.fetches.said()


async def test_what_came_of_files_that_a_replica_needs_by_then_stays(place: Place, hub: HubServer):
    slow, spec = SlowHub(hub), place.spec(more=bytes(3 << 20))
    files = place.want(spec)
    await place.until(lambda: [".journal", ".part"] == pieces(place))
    place.used.add(files)
    place.told(FilesRetired(files=files, remove=True))
    await place.until(lambda: not place.fetches.said())
    await place.until(lambda: not [*(place.folder.parent / "ahead").iterdir()])
    assert [".journal", ".part"] == pieces(place)
    slow.goes.set()


async def test_an_agent_that_was_away_when_files_were_retired_removes_what_came_of_them(
    tmp_path: Path, hub: HubServer, hand_log: HandLog, node: NodeId
):
    slow = SlowHub(hub)
    before = Place(tmp_path / "files", hub, hand_log, node)
    files = before.want(before.spec(more=bytes(3 << 20)))
    await before.until(lambda: [".journal", ".part"] == pieces(before))
    await before.files.close()

    after = Place(tmp_path / "files", hub, hand_log, node)
    after.told(FilesRetired(files=files, remove=True))
    await after.until(lambda: not pieces(after))

    slow.goes.set()
    await after.files.close()


async def test_what_came_whole_stays_while_another_agent_may_lay_it_out_and_goes_when_nobody_used_it_for_long(
    place: Place, hub: HubServer, monkeypatch: pytest.MonkeyPatch
):
    def at_once(tried: int) -> float:
        return 0.0

    monkeypatch.setattr(files_loop, "slow_wait_s", at_once)
    # given a model of which one file is here whole, and one is coming
    slow, store = SlowHub(hub), place.folder
    hub.repository("o/two", {GGUF: weft_tiny.gguf_path().read_bytes() + bytes(3 << 20), "config.json": b"{}"})
    listing = list_source(HfSource(repository="o/two"), ("gguf",), place.settings)
    spec = ModelSpec(source=listing.source, engine="llama.cpp", files=listing.files[::-1])
    files = place.want(spec)
    await place.until(lambda: [".journal", ".part"] == pieces(place) and [*(store / "blobs").glob("??/*")])
    (blob,) = (store / "blobs").glob("??/*")
    # when it is wanted no more, the half goes, and the whole stays
    place.told(FilesRetired(files=files, remove=True))
    await place.until(lambda: not pieces(place))
    await place.loop.turn()
    assert blob.exists()
    assert [files] == [path.stem for path in (store.parent / "ahead").iterdir()]
    # and when nobody used it for long, that goes too
    os.utime(store / "marks" / blob.name, (10.0, 10.0))
    await place.until(lambda: not [*(store.parent / "ahead").iterdir()])
    assert not blob.exists()
    slow.goes.set()


async def test_what_another_wish_needs_by_then_stays(place: Place, hub: HubServer):
    # given two files that are here, which nobody used for long
    hub.repository("o/two", {GGUF: weft_tiny.gguf_path().read_bytes(), "config.json": b"{}"})
    listing = list_source(HfSource(repository="o/two"), ("gguf",), place.settings)
    spec = ModelSpec(source=listing.source, engine="llama.cpp", files=listing.files)
    files = place.want(spec)
    await place.until(lambda: files in place.fetches.there)
    wanted = place.own.part.file_wishes.wanted[files]
    (place.folder / "manifests" / files).unlink()
    for mark in (place.folder / "marks").iterdir():
        os.utime(mark, (10.0, 10.0))
    last = spec.files[-1]
    looked: list[int] = []

    def needed() -> set[tuple[str, int]]:
        looked.append(1)
        return {(last.checksum, last.size)} if len(looked) > 1 else set()

    # when they are forgotten, and a wish for the last of them comes meanwhile
    assert await place.fetches.forget(wanted, needed)
    # then that one stays
    assert [last.size] == [path.stat().st_size for path in (place.folder / "blobs").glob("??/*")]


async def test_what_another_fetch_brings_here_stays_whatever_it_is_called_there(place: Place, hub: HubServer):
    # given a file that is here whole, which nobody used for long
    slow, tiny = SlowHub(hub), weft_tiny.gguf_path().read_bytes()
    hub.repository("o/one", {"config.json": b"{}", GGUF: tiny})
    hub.repository("o/other", {"generation_config.json": b"{}", GGUF: tiny + bytes(3 << 20)})
    specs: list[ModelSpec] = []
    for name in ("o/one", "o/other"):
        listing = list_source(HfSource(repository=name), ("gguf",), place.settings)
        specs.append(ModelSpec(source=listing.source, engine="llama.cpp", files=listing.files[::-1]))
    one, other = specs
    assert one.files[0].checksum == other.files[0].checksum
    assert one.files[0].name != other.files[0].name
    wanted = FilesWanted(files=files_digest(one), source=cast(HfSource, one.source), listed=one.files[:1], bytes=2)
    # when it is forgotten while another fetch brings the same under another name
    needed = asyncio.create_task(place.fetches.want(other, REPLICA))
    await place.until(lambda: [".journal", ".part"] == pieces(place) and [*(place.folder / "blobs").glob("??/*")])
    (blob,) = (place.folder / "blobs").glob("??/*")
    os.utime(place.folder / "marks" / blob.name, (10.0, 10.0))
    assert await place.fetches.forget(wanted, tuple)
    # then it stays, and that fetch ends
    assert blob.exists()
    slow.goes.set()
    assert (await needed / "generation_config.json").is_file()


async def test_what_can_not_be_noted_does_not_begin(place: Place):
    ahead = place.folder.parent / "ahead"
    ahead.write_text("a file where the folder is to be")
    files = place.want(place.spec())
    await place.loop.turn()
    assert () == place.fetches.said()
    assert files not in place.fetches.there
    ahead.unlink()
    await place.until(lambda: files in place.fetches.there)


async def test_a_fault_in_one_look_ends_no_loop(place: Place):
    # given a fault that nobody thought of
    used = place.used
    del place.used
    with pytest.raises(AttributeError):
        await place.loop.turn()
    place.loop.wake.ring()
    await asyncio.sleep(0.05)
    # when it is over, then the loop looks on by itself
    place.used = used
    files = place.want(place.spec())
    async with asyncio.timeout(30):
        while files not in place.fetches.there:
            place.loop.wake.ring()
            await asyncio.sleep(0.02)


async def test_a_disk_that_fails_ends_no_loop_and_what_it_kept_from_coming_comes_later(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    asked = list[bool]()

    def fails(self: Store) -> int:
        asked.append(threading.current_thread() is threading.main_thread())
        raise OSError(errno.ESTALE, "Stale file handle")

    # given a store whose disk does not tell what is free
    monkeypatch.setattr(Store, "free", fails)
    files = place.want(place.spec())
    # when it is looked at, then nothing comes, nothing ends, and what asks is not the event loop
    await place.loop.turn()
    assert files not in place.fetches.there
    assert {False} == set(asked)
    monkeypatch.undo()
    await place.until(lambda: files in place.fetches.there)


async def test_a_fault_that_nobody_expected_is_said_and_tried_again_later_each_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    tries = list[str]()

    async def breaks(self: ModelFetches, wanted: FilesWanted) -> Path:
        tries.append(wanted.files)
        raise RuntimeError("what nobody thought of")

    monkeypatch.setattr(ModelFetches, "ahead", breaks)
    files = place.want(place.spec())
    await place.until(place.loop.fault)
    fault = place.loop.fault()
    assert fault is not None
    assert (files, True) == (fault.files, "RuntimeError" in fault.reason)
    # when it is looked at many times more, then it waits ever longer
    for _ in range(20):
        await place.loop.turn()
        await asyncio.sleep(0)
    assert len(tries) <= 3
    monkeypatch.undo()
    await place.until(lambda: files in place.fetches.there)
