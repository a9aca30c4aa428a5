"""Models are fetched from a real hub into a node's store: once, whole or not at all, and with a reason where not."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest
import weft_tiny
from weft_contracts.digest import files_digest
from weft_contracts.facts.source import HfSource, SourceFile
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ReplicaId
from weft_sources.environment import source_settings
from weft_sources.listing import list_source
from weft_sources.settings import SourceSettings
from weft_testing.hub_server import HubServer, hub_server
from weft_worker_agent.inbound.store_loop import may_go
from weft_worker_agent.outbound.files import collecting
from weft_worker_agent.outbound.files.model_fetches import FetchFailed, ModelFetches
from weft_worker_agent.outbound.files.node_files import NodeFiles
from weft_worker_agent.outbound.files.source_secrets import SourceSecrets
from weft_worker_agent.outbound.mesh.gateway import Gateway
from weft_worker_agent.outbound.mesh.identity import load_or_make

ONE, TWO = ReplicaId("m-x-1"), ReplicaId("m-x-2")
GGUF = "tiny-F16.gguf"
MakeFetches = Callable[..., ModelFetches]


@pytest.fixture
def hub() -> Generator[HubServer]:
    with hub_server() as server:
        yield server


@pytest.fixture
def gate(hub: HubServer) -> Generator[threading.Event]:
    """While it isn't set, the hub gives no weights."""
    gate = threading.Event()

    def waits(path: str) -> int:
        if path.startswith("/repos/"):
            gate.wait(30)
        return 0

    hub.broken = waits
    yield gate
    gate.set()


@pytest.fixture
def settings(hub: HubServer) -> SourceSettings:
    return source_settings(hub=hub.url, allow=("127.0.0.1",), environ={"HF_HUB_CACHE": "/nowhere"})


@pytest.fixture
async def fetches(tmp_path: Path, settings: SourceSettings) -> AsyncIterator[MakeFetches]:
    """Makes what fetches into one store, as often as an agent is started over it."""
    made: list[NodeFiles] = []

    def make(most_bytes: int | None = None) -> ModelFetches:
        folder = tmp_path / "files"
        files = NodeFiles(folder, SourceSecrets(settings), at_once=2, most_bytes=most_bytes, changed=lambda: None)
        made.append(files)
        return files.fetches

    yield make
    for each in made:
        await each.close()


def spec_of(hub: HubServer, settings: SourceSettings, name: str = "o/tiny", more: bytes = b"") -> ModelSpec:
    """A model of the hub as an accepted spec names it; `more` makes its files others."""
    config = (weft_tiny.folder() / "config.json").read_bytes()
    hub.repository(name, {GGUF: weft_tiny.gguf_path().read_bytes() + more, "config.json": config})
    listing = list_source(HfSource(repository=name), ("gguf",), settings)
    return ModelSpec(source=listing.source, engine="llama.cpp", files=listing.files)


def size_of(spec: ModelSpec) -> int:
    return sum(file.size for file in spec.files)


async def test_replicas_that_want_the_same_wait_for_one_transfer(
    hub: HubServer, settings: SourceSettings, fetches: MakeFetches, gate: threading.Event
) -> None:
    # given two replicas that want a model which is not here
    spec, here = spec_of(hub, settings), fetches()
    assert size_of(spec) == here.lacks(spec)
    both = [asyncio.create_task(here.want(spec, replica)) for replica in (ONE, TWO)]
    # when it is on its way, each is told so
    async with asyncio.timeout(30):
        while not hub.count("GET /repos/"):
            await asyncio.sleep(0.01)
    said = here.said()
    assert [(ONE, GGUF), (TWO, GGUF)] == [(each.replica, each.file) for each in said]
    assert {("fetching", size_of(spec))} == {(each.phase, each.total) for each in said}
    # and when it comes
    gate.set()
    one, two = await asyncio.gather(*both)
    # then it came once, as the hub has it, and is known to be here
    assert one == two
    assert weft_tiny.gguf_path().read_bytes() == (one / GGUF).read_bytes()
    assert {file.name for file in spec.files} == {path.name for path in one.iterdir()}
    assert 1 == hub.count(f"GET /repos/o/tiny/{hub.repositories['o/tiny'].branches['main']}/{GGUF}")
    assert {files_digest(spec): size_of(spec)} == dict(here.there)
    assert (None, ()) == (here.lacks(spec), here.said())


async def test_what_was_fetched_is_there_for_the_next_agent_and_costs_no_request(
    hub: HubServer, settings: SourceSettings, fetches: MakeFetches
) -> None:
    spec = spec_of(hub, settings)
    first = await fetches().want(spec, ONE)
    asked = hub.asked.total()
    # when another agent begins on the same store
    again = fetches()
    assert {files_digest(spec): size_of(spec)} == dict(again.there)
    assert first == await again.want(spec, TWO)
    assert first == again.folder_of(files_digest(spec))
    assert asked == hub.asked.total()


async def test_a_fetch_ends_with_the_last_who_waits_for_it_and_leaves_nothing_that_looks_whole(
    hub: HubServer, settings: SourceSettings, fetches: MakeFetches, gate: threading.Event
) -> None:
    spec, here = spec_of(hub, settings), fetches()
    one, two = (asyncio.create_task(here.want(spec, replica)) for replica in (ONE, TWO))
    async with asyncio.timeout(30):
        while not hub.count("GET /repos/"):
            await asyncio.sleep(0.01)
    # when one of two goes, it goes on
    one.cancel()
    await asyncio.wait({one})
    assert [TWO] == [each.replica for each in here.said()]
    # and when the other goes, it ends
    two.cancel()
    await asyncio.wait({two})
    assert (True, True, ()) == (one.cancelled(), two.cancelled(), here.said())
    assert {} == dict(here.there)
    gate.set()
    # and whoever asks next gets all of it
    assert (await here.want(spec, ONE) / GGUF).stat().st_size == weft_tiny.gguf_path().stat().st_size


async def test_a_file_that_is_not_what_it_should_be_is_named_with_its_source(
    hub: HubServer, settings: SourceSettings, fetches: MakeFetches
) -> None:
    # given a spec that was accepted with other content
    spec, here = spec_of(hub, settings), fetches()
    wrong = SourceFile(name=GGUF, size=spec.files[0].size, checksum="sha256:" + "0" * 64)
    spec = spec.model_copy(update={"files": (wrong, *spec.files[1:])})
    # when it is fetched
    with pytest.raises(FetchFailed) as failed:
        await here.want(spec, ONE)
    # then the reason names both, and nothing of it is here
    assert "o/tiny" in str(failed.value)
    assert GGUF in str(failed.value)
    assert not failed.value.no_room
    assert ({}, ()) == (dict(here.there), here.said())


async def test_a_hub_that_is_away_is_a_reason_and_one_that_is_back_gives_the_file(
    hub: HubServer, settings: SourceSettings, fetches: MakeFetches
) -> None:
    spec, here = spec_of(hub, settings), fetches()
    hub.broken = lambda path: 404 if path.startswith("/repos/") else 0
    with pytest.raises(FetchFailed, match="hf:o/tiny could not be fetched"):
        await here.want(spec, ONE)
    hub.broken = lambda path: 0
    await here.want(spec, ONE)
    assert files_digest(spec) in here.there


async def test_a_model_that_the_disk_has_no_room_for_moves_no_byte(
    hub: HubServer, settings: SourceSettings, fetches: MakeFetches
) -> None:
    spec, here = spec_of(hub, settings), fetches()
    huge = spec.files[0].model_copy(update={"size": 1 << 60})
    with pytest.raises(FetchFailed) as failed:
        await here.want(spec.model_copy(update={"files": (huge,)}), ONE)
    assert failed.value.no_room
    assert 0 == hub.count("GET /repos/") + hub.count("/resolve/")


async def test_what_huggingface_hub_laid_here_is_taken_once_verified_and_an_offline_node_asks_nobody(
    hub: HubServer, settings: SourceSettings, tmp_path: Path
) -> None:
    # given an offline node with a hub's folder that has the model's weights
    spec = spec_of(hub, settings)
    assert isinstance(spec.source, HfSource)
    snapshot = tmp_path / "hub" / "models--o--tiny" / "snapshots" / spec.source.revision
    blobs = snapshot.parents[1] / "blobs"
    for folder in (snapshot, blobs):
        folder.mkdir(parents=True)
    for file in spec.files:
        content = hub.repositories["o/tiny"].commits[spec.source.revision][file.name].body
        (blobs / file.checksum.partition(":")[2]).write_bytes(content)
        (snapshot / file.name).symlink_to(f"../../blobs/{file.checksum.partition(':')[2]}")
    offline = replace(settings, offline=True, hub_folder=tmp_path / "hub")
    files = NodeFiles(tmp_path / "files", SourceSecrets(offline), at_once=1, most_bytes=None, changed=lambda: None)
    asked = hub.asked.total()
    # when it is wanted
    folder = await files.fetches.want(spec, ONE)
    # then it is here, and nobody was asked
    assert weft_tiny.gguf_path().read_bytes() == (folder / GGUF).read_bytes()
    assert asked == hub.asked.total()
    # but when the folder's content is another, it isn't taken
    await files.close()
    path = blobs / spec.files[0].checksum.partition(":")[2]
    path.write_bytes(bytes(path.stat().st_size))
    other = NodeFiles(tmp_path / "others", SourceSecrets(offline), at_once=1, most_bytes=None, changed=lambda: None)
    with pytest.raises(FetchFailed, match=r"is not in .*, and this node is offline"):
        await other.fetches.want(spec, ONE)
    assert [] == list((tmp_path / "others" / "partial").iterdir())
    await other.close()


async def test_above_the_limit_the_least_used_goes_and_what_is_needed_stays(
    hub: HubServer, settings: SourceSettings, fetches: MakeFetches
) -> None:
    # given three models, of which one may stay by its size
    specs = [spec_of(hub, settings, f"o/tiny{number}", bytes(32 * number)) for number in range(3)]
    here = fetches(most_bytes=size_of(specs[0]) * 3 // 2)
    for spec in specs:
        await here.want(spec, ONE)
    first, second, third = (files_digest(spec) for spec in specs)
    # when the oldest is needed
    await here.collect(lambda: {first})
    # then it stays, and others went
    assert {first} <= here.there.keys() < {first, second, third}
    assert here.folder_of(first).is_dir()
    gone = next(iter({second, third} - here.there.keys()))
    assert not here.folder_of(gone).exists()


async def test_above_the_limit_what_the_mesh_can_not_do_without_stays(
    hub: HubServer, settings: SourceSettings, fetches: MakeFetches
) -> None:
    # given two models above the limit, the older of which is the last copy
    specs = [spec_of(hub, settings, f"o/tiny{number}", bytes(32 * number)) for number in range(2)]
    here = fetches(most_bytes=1)
    for spec in specs:
        await here.want(spec, ONE)
    last, other = (files_digest(spec) for spec in specs)
    asked: list[str] = []

    async def may_go(files: str) -> bool:
        asked.append(files)
        return files != last

    await here.collect(tuple, may_go)
    assert {last} == here.there.keys()
    assert sorted((last, other)) == sorted(asked)


async def test_many_that_may_not_go_hold_up_none_that_may_and_are_asked_about_again_later(
    hub: HubServer, settings: SourceSettings, fetches: MakeFetches, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given more last copies than one look asks about, and behind them one that may go
    specs = [spec_of(hub, settings, f"o/tiny{number}", bytes(32 * number)) for number in range(10)]
    here = fetches(most_bytes=1)
    for spec in specs:
        await here.want(spec, ONE)
    *last, other = (files_digest(spec) for spec in specs)
    asked: list[str] = []

    async def may_go(files: str) -> bool:
        asked.append(files)
        return files == other

    # when it is looked twice
    await here.collect(tuple, may_go)
    assert 8 == len(asked)
    await here.collect(tuple, may_go)
    # then that one has gone, and none was asked about twice
    assert {*last} == here.there.keys()
    assert sorted((*last, other)) == sorted(asked)
    await here.collect(tuple, may_go)
    assert 10 == len(asked)
    # and after a while they are asked about again
    monkeypatch.setattr(collecting, "_REFUSED_S", -1.0)
    await here.collect(tuple, may_go)
    assert 18 == len(asked)


async def test_while_no_gateway_answers_files_stay(tmp_path: Path) -> None:
    gateway = Gateway("http://127.0.0.1:1", load_or_make(tmp_path))
    assert not await may_go(gateway, "0" * 16)


async def test_without_a_limit_nothing_goes(hub: HubServer, settings: SourceSettings, fetches: MakeFetches) -> None:
    spec, here = spec_of(hub, settings), fetches()
    await here.want(spec, ONE)
    await here.collect(tuple)
    assert files_digest(spec) in here.there
