"""What a node says of its installs, loads and memory is shown by a real gateway, and gone when it says so."""

import json
import secrets
from collections.abc import Callable, Generator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from weft_contracts.facts.machine import FilesCame, FilesFailed, Reported
from weft_contracts.facts.node import FilesRetired, FilesWanted, Rejoined
from weft_contracts.facts.run import Fetching, Installing, Loading, Ready, Stopped
from weft_contracts.facts.source import HttpsSource
from weft_contracts.facts.values import Addresses, Device, DeviceClaim, Hardware
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_contracts.signals import NO_REPLICA, FetchSaid, InstallSaid, LoadSaid, MemorySaid, NodeProgress
from weft_contracts.subjects import machine, node_signal, run
from weft_contracts.subjects import node as node_of
from weft_testing.browser import Browser
from weft_testing.origin import serving, whole
from weft_testing.publishing_mesh import published

pytestmark = pytest.mark.slow
World = Any
Shown = dict[str, Any]
NODE = NodeId("n-aaaaaaaaaaaaaaaa")
MIB, GIB = 1 << 20, 1 << 30
FETCHING = InstallSaid(
    engine="simulated",
    version="1.0",
    vendor="cpu",
    phase="fetching",
    package="torch",
    fetched=GIB // 2,
    total=2 * GIB,
    fetching_s=40.0,
    since_s=50.0,
)


class Node:
    """A node's own connection, by which it says how far it is."""

    def __init__(self, id: NodeId, client: Any) -> None:
        self._id = id
        self._client = client

    async def says(self, **fields: Any) -> None:
        progress = NodeProgress.model_validate({"node": self._id} | fields)
        await self.says_raw(progress.model_dump_json(exclude_defaults=True).encode())

    async def says_raw(self, body: bytes) -> None:
        await self._client.publish(node_signal(self._id, "progress"), body)
        await self._client.flush(30)


@pytest.fixture
async def replica(world: World) -> ReplicaId:
    """A replica that has its place on the node, on a gateway that is ready."""
    await world.a_gateway()
    await world.a_node()
    await world.a_model()
    placed: ReplicaId = await world.a_placed_replica()
    return placed


@pytest.fixture
async def node(world: World, replica: ReplicaId) -> Node:
    return Node(NODE, await world.mesh.worker(NODE))


@pytest.fixture
def page(browser: Browser) -> Generator[Browser]:
    """A browser that shows nothing yet, and nothing any more when its gateway ends."""
    browser.look()
    yield browser
    browser.open("about:blank")
    browser.errors()


async def shown(world: World, view: str = "all") -> Shown:
    """By replica, what the status says of its progress."""
    async with httpx.AsyncClient(timeout=30) as client:
        answer: dict[str, Any] = (await client.get(f"{world.url}/api/status", params={"view": view})).json()
    progress: Shown = answer["progress"]
    return progress


async def installs(world: World, of: NodeId = NODE) -> list[Shown]:
    """What a node installs, as `/api/backends` says."""
    async with httpx.AsyncClient(timeout=30) as client:
        listed: list[Any] = (await client.get(f"{world.url}/api/backends")).json()["items"]
    return next(each["installs"] for each in listed if each["node"] == of)


async def until_shown(world: World, node: Node, holds: Callable[[Shown], bool], said: Shown) -> Shown:
    """Say it as a node does, again and again, until the status has it."""
    found: Shown = {}

    async def there() -> bool:
        await node.says(**said)
        found.clear()
        found.update(await shown(world))
        return holds(found)

    await world.until(there)
    return found


async def test_an_install_is_shown_from_its_first_word_to_its_end(
    world: World, node: Node, replica: ReplicaId, page: Browser
) -> None:
    def is_shown(found: Shown) -> bool:
        return replica in found

    def is_overdue(found: Shown) -> bool:
        return bool(found[replica]["install"]["overdue"])

    def is_gone(found: Shown) -> bool:
        return not found

    # given a replica whose engine is being installed
    await world.tell(run(NODE, replica), Installing(epoch=1, engine="simulated"))
    page.open(world.url)
    page.shows("#models .replicas .pill", "loading")
    # when its node says how far that is
    found = await until_shown(world, node, is_shown, {"installs": (FETCHING,)})
    # then API and page show phase, package, bytes, and an estimate of the rest
    about = "fetching torch, 0.5 of 2.0 GiB, about 2 min left"
    assert f"installing simulated: {about}" == found[replica]["about"]
    install = found[replica]["install"]
    figures = {"phase": "fetching", "package": "torch", "fetched": GIB // 2, "total": 2 * GIB, "left_s": 120.0}
    assert {**figures, "about": about} == {name: install[name] for name in (*figures, "about")}
    assert [install] == await installs(world)
    assert found == await shown(world, "page")
    page.shows("#models .replicas", f"Installing simulated: {about}.")
    assert 1 == page.count("#models .replicas .bar-track:not([hidden])")
    # when it takes longer than it should, that is said
    overdue = FETCHING.model_copy(update={"phase": "checking", "overdue": True, "since_s": 960.0})
    await until_shown(world, node, is_overdue, {"installs": (overdue,)})
    page.shows("#models .replicas .warn", "Still installing after 16 min: trying it out.")
    # and when it has ended, nothing is
    await world.tell(run(NODE, replica), Loading(epoch=1, incarnation=Incarnation("i-1")))
    await until_shown(world, node, is_gone, {})

    async def cleared() -> bool:
        return not await installs(world) and "Still installing" not in page.text("#models .replicas")

    await world.until(cleared)
    assert [] == page.errors()


async def test_a_fetch_is_shown_with_a_bar_and_gone_when_its_run_loads(
    world: World, node: Node, replica: ReplicaId, page: Browser
) -> None:
    def is_shown(found: Shown) -> bool:
        return replica in found and found[replica]["fetch"] is not None

    # given a replica whose files are on their way
    await world.tell(run(NODE, replica), Fetching(epoch=1, bytes=2 * 10**9))
    said = {"source": "hf:o/r", "phase": "fetching", "fetched": 9 * 10**8, "total": 2 * 10**9, "rate": 4e7}
    fetch = FetchSaid.model_validate({"replica": replica, "fetching_s": 20.0} | said)
    # when its node says how far they are
    found = await until_shown(world, node, is_shown, {"fetches": (fetch,)})
    # then people see it
    about = "fetching 45 % of 2.0 GB, 40 MB/s, about 30 s left"
    assert (about, 9 * 10**8) == (found[replica]["about"], found[replica]["fetch"]["fetched"])
    page.open(world.url)
    page.shows("#models .replicas", f"{about[0].upper()}{about[1:]}.")
    assert 1 == page.count("#models .replicas .bar-track:not([hidden])")
    # and when it loads, no more
    await world.tell(run(NODE, replica), Loading(epoch=1, incarnation=Incarnation("i-1")))
    await world.folded()
    assert replica not in await shown(world)
    assert [] == page.errors()


async def test_files_that_are_fetched_ahead_are_shown_with_a_bar_until_they_lie_there(
    world: World, node: Node, replica: ReplicaId, page: Browser
) -> None:
    async def stands(state: str) -> Shown:
        """The one node's part of the one model's files, once it is so."""
        found: list[Shown] = []

        async def so() -> bool:
            async with httpx.AsyncClient(timeout=30) as client:
                items = (await client.get(f"{world.url}/api/files")).raise_for_status().json()["items"]
            found[:] = [one for each in items for one in each["nodes"] if one["state"] == state]
            return bool(found)

        await world.until(so)
        return found[0]

    # given a node that is to have a model's files
    source = HttpsSource(url="https://me:secret@models.example/m.gguf?token=secret")
    page.open(world.url)
    await world.tell(node_of(NODE), FilesWanted(files="f1", source=source, listed=(), bytes=100, model_name="m"))
    shown = await stands("wanted")
    assert (True, 0, None) == (shown["pinned"], shown["fetched"], shown["fault"])
    assert "not begun yet" == shown["about"]
    page.shows("#files .reason.wait", "Not begun yet.")
    page.shows("#files .pill", "wanted")
    # when it says why it can't have them
    await world.tell(machine(NODE), FilesFailed(files="f1", reason="the hub is away"))
    assert "the hub is away" == (await stands("failed"))["fault"]
    page.shows("#files .reason.bad", "The last try failed: the hub is away.")
    # when it says how far they are
    said = {"source": "https://models.example/m.gguf", "phase": "fetching", "fetched": 50, "total": 100}
    fetch = FetchSaid.model_validate({"replica": NO_REPLICA, "files": "f1"} | said)
    await node.says(fetches=(fetch,))
    shown = await stands("coming")
    assert (50, "fetching 50 % of 100 B") == (shown["fetched"], shown["progress"]["about"])
    page.shows("#files", "Fetching 50 % of 100 B.")
    assert 1 == page.count("#files .bar-track:not([hidden])")
    assert "secret" not in page.text("#files")
    # when they lie there
    await world.tell(machine(NODE), FilesCame(files="f1", bytes=100))
    shown = await stands("here")
    assert (100, None, True) == (shown["fetched"], shown["progress"], shown["since"] is not None)
    page.shows("#files .pill", "here")
    assert 0 == page.count("#files .bar-track:not([hidden])")
    # and when they are to go, that is said
    await world.tell(node_of(NODE), FilesRetired(files="f1", remove=True))
    page.shows("#files", "goes once unused")
    shown = await stands("here")
    assert (False, True) == (shown["pinned"], shown["leaves"])
    assert [] == page.errors()


async def test_why_a_models_prompts_are_not_made_is_the_same_sentence_everywhere_until_its_files_are_back(
    world: World, node: Node, replica: ReplicaId, page: Browser
) -> None:
    async def got(path: str) -> str:
        async with httpx.AsyncClient(timeout=30) as client:
            return (await client.get(f"{world.url}{path}")).raise_for_status().text

    async def away() -> str:
        """What the status says of the model."""
        return "".join(json.loads(await got("/api/status"))["no_tokenizer"].values())

    async def is_back() -> bool:
        return not await away()

    # given a model whose tokenizer nobody gives: its node is gone, and nothing was kept
    page.open(world.url)
    body = f'{{"model": {{}}, "of": "{secrets.token_hex(8)}"}}'.encode()  # no gateway of this host has it
    ready = Ready(
        epoch=1,
        incarnation=Incarnation("i-1"),
        port=1,
        engine="simulated",
        engine_version="1",
        metadata=(published(body),),
        self_hosted=True,
    )
    await world.tell(run(NODE, replica), Loading(epoch=1, incarnation=Incarnation("i-1")), ready)
    # then API, page, a model's own route and metrics say it, though nobody asked for the model
    await world.until(away)
    why = await away()
    assert why.startswith(
        "tokenizer.json of sim can't be had: the mesh's object store does not have it; node node-aaaa "
    )
    page.shows("#models .reason.warn", f"No tokenizer here: {why}")
    assert why == json.loads(await got("/v1/models/sim"))["weft"]["no_tokenizer"]
    assert 'weft_gateway_models_without_prompts{why="away"} 1.0' in await got("/metrics")
    # and when its node is there again, it is gone by itself
    with serving(whole(body)) as origin:
        at = Addresses(host="127.0.0.1", http_port=int(urlsplit(origin.url).port or 0))
        await world.tell(node_of(NODE), Rejoined(addresses=at))
        await world.until(is_back, 120)
    assert 'weft_gateway_models_without_prompts{why="away"} 0.0' in await got("/metrics")

    async def is_clear() -> bool:
        return page.count("#models .reason.warn:not([hidden])") == 0

    await world.until(is_clear)
    assert [] == page.errors()


async def test_a_load_and_the_memory_that_is_held_are_shown_against_what_is_claimed(
    world: World, node: Node, replica: ReplicaId, page: Browser
) -> None:
    def is_shown(found: Shown) -> bool:
        return replica in found and found[replica]["load"] is not None

    def has_two(found: Shown) -> bool:
        return two in found

    await world.tell(run(NODE, replica), Loading(epoch=1, incarnation=Incarnation("i-1")))
    load = LoadSaid(replica=replica, taken=3 * GIB, total=12 * GIB, loading_s=10.0)
    held = MemorySaid(replica=replica, device=0, used=700 * MIB)
    found = await until_shown(world, node, is_shown, {"loads": (load,), "memory": (held,)})
    assert "loading weights, 3.0 of 12.0 GiB, about 30 s left" == found[replica]["about"]
    assert (30.0, 3 * GIB) == (found[replica]["load"]["left_s"], found[replica]["load"]["taken"])
    (device,) = found[replica]["devices"]
    figures = {"node": NODE, "node_name": "node-aaaa", "index": 0, "claimed": 1, "used": 700 * MIB}
    assert figures == {name: device[name] for name in figures}
    # when it has stopped, it loads no more, whatever was said before
    await world.tell(run(NODE, replica), Stopped(epoch=1, why="exited"))
    await world.folded()
    assert (await shown(world))[replica]["load"] is None
    # given a replica on two accelerators
    names = ("EPYC", "H100", "L40S")
    hardware = Hardware(
        cpus=1,
        memory=64 * GIB,
        disk_free=1,
        architecture="x86_64",
        devices=tuple(
            Device(index=index, vendor="nvidia" if index else "cpu", name=name, memory=64 * GIB, uuid=name)
            for index, name in enumerate(names)
        ),
    )
    await world.tell(machine(NODE), Reported(hardware=hardware, backends=(), builtins=(), agent_version="1"))
    devices = (DeviceClaim(index=1, bytes=40 * GIB), DeviceClaim(index=2, bytes=20 * GIB))
    two = await world.a_placed_replica(2, devices=devices)
    page.open(world.url)
    page.shows("#models .replicas", "H100 #1: 40.0 GiB claimed; L40S #2: 20.0 GiB claimed")
    # when what it holds of one of them is told, and of the other it is not known
    held = MemorySaid(replica=two, device=2, used=5 * GIB)
    await until_shown(world, node, has_two, {"memory": (held,)})
    page.shows("#models .replicas", "H100 #1: 40.0 GiB claimed; L40S #2: 5.0 GiB of 20.0 GiB")
    assert [] == page.errors()
