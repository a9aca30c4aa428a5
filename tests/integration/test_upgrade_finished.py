"""A mesh of an earlier version: lists and objects among an engine's arguments wait until all who live read them."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from nats.aio.client import Client
from weft_contracts.catalogue import Writer
from weft_contracts.facts.mesh import Founded
from weft_contracts.formats import READS
from weft_contracts.subjects import MESH
from weft_eventlog.one_socket import connected
from weft_identity import trust
from weft_identity.mesh_exports import service_credentials
from weft_runtime.connection import signed
from weft_testing.bare_node import BareNode
from weft_testing.engine_environment import engine_environment, profile_in
from weft_testing.mesh_server import running_mesh_server
from weft_testing.story import MeshUnderTest, until

PLAIN = {"source": {"kind": "simulated"}, "engine": "simulated"}
STRUCTURED = {
    "source": {"kind": "builtin", "name": "tiny"},
    "engine": "echo",
    "context_tokens": 64,
    "engine_args": {"plugins": ["a", {"b": [1, 2.5, None]}], "limits": {"image": 2}},
}
ECHO = Path(__file__).parents[1] / "packages" / "echo" / "weft_echo"


@pytest.fixture
def backends(tmp_path: Path) -> Path:
    """An environment of the echo that takes a list, and says all as often as that has parts, and an object."""
    package = Path(shutil.copytree(ECHO, tmp_path / "package" / ECHO.name))
    profile, adapter = package / "profile.py", package / "adapter.py"
    plain, structured = '{"times": Argument(type="integer", least=1, most=3)}', '"plugins": Argument(type="list")'
    structured = f'{{{structured}, "limits": Argument(type="object")}}'
    for file, was, now in (
        (profile, plain, structured),
        (adapter, 'launch.engine_args.get("times", 1)', 'len(launch.engine_args["plugins"])'),
    ):
        text = file.read_text()
        assert was in text
        file.write_text(text.replace(was, now))
    return engine_environment(tmp_path, package, "echo")


@pytest.fixture
def older_mesh(tmp_path: Path, backends: Path) -> Iterator[MeshUnderTest]:
    """This version's services on a log that the version before has founded."""

    async def found() -> None:
        async with running_mesh_server(tmp_path / "state") as server:
            body = f"[{Founded(version='0.0.9').model_dump_json()}]".encode()
            await (await server.root()).jetstream(timeout=30).publish(MESH.subject("founded"), body)

    asyncio.run(found())
    with MeshUnderTest(tmp_path, WEFT_BACKENDS=str(backends)) as mesh:
        yield mesh


@asynccontextmanager
async def service_of_before(mesh: MeshUnderTest, name: Writer) -> AsyncGenerator[None]:
    """A connection as a service of the version before has it: its name alone."""
    credentials = service_credentials(trust.load(mesh.state / "trust"), name)
    options: dict[str, Any] = signed(credentials.token, credentials.seed.encode())
    client = await connected([f"nats://127.0.0.1:{mesh.part('nats')['port']}"], name=name, **options)
    try:
        yield
    finally:
        await client.close()


@asynccontextmanager
async def worker_of_before(mesh: MeshUnderTest, name: str) -> AsyncGenerator[None]:
    """A node of the version before: it lives, and has not said that it reads any second version."""
    token = json.loads(mesh.weft("tokens", "create", "--auto-approve", "--json").stdout)["secret"]
    async with httpx.AsyncClient(timeout=30) as http:
        node = BareNode(mesh.url, name, http)
        (await node.register(token)).raise_for_status()
        client = await node.connect(await node.credential())
        await node.report(client)
        living = asyncio.create_task(_live(node, client))
        try:
            yield
        finally:
            living.cancel()
            await client.close()


@contextmanager
def in_background(life: AbstractAsyncContextManager[object]) -> Generator[None]:
    """It lives on a thread of its own while the story waits and runs commands."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(life.__aenter__(), loop).result(90)
        try:
            yield
        finally:
            asyncio.run_coroutine_threadsafe(life.__aexit__(None, None, None), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


async def _live(node: BareNode, client: Client) -> None:
    while True:
        await node.lease(client)
        await asyncio.sleep(1)


def state_of(mesh: MeshUnderTest, node: str) -> str | None:
    return next((each["state"] for each in mesh.status()["nodes"] if each["name"] == node), None)


def refused(mesh: MeshUnderTest) -> str:
    said = mesh.weft("upgrade", "finish")
    assert 1 == said.returncode, said.stdout
    assert not mesh.facts("mesh", "format_raised")
    return said.stderr


def settled(mesh: MeshUnderTest) -> None:
    """worker-1 has said what it reads, so that it holds up nothing."""
    until("worker-1 has reported", lambda: not json.loads(mesh.weft("upgrade", "--json").stdout)["behind"])


@pytest.mark.slow
@pytest.mark.sabotage("deaf-to-old-services")
def test_an_earlier_mesh_takes_lists_and_objects_once_its_upgrade_is_finished(
    older_mesh: MeshUnderTest, backends: Path
) -> None:
    mesh, profile = older_mesh, profile_in(backends, "echo")
    # given an earlier mesh: what it could do it does, and nothing is written anew
    mesh.deploy("plain", PLAIN).raise_for_status()
    settled(mesh)
    answer = mesh.http.post(f"{mesh.url}/api/engine-profiles", json=profile)
    assert 409 == answer.status_code, answer.text
    assert "weft upgrade finish" in answer.json()["detail"]
    assert not any(fact.get("v") != 1 for event in mesh.events() for fact in event["facts"])
    # when a service of the version before is connected
    with in_background(service_of_before(mesh, "scheduler")):
        # then it is named
        assert "1 scheduler of an earlier version is connected: upgrade or stop it" in refused(mesh)
    # when a worker of the version before lives here
    with in_background(worker_of_before(mesh, "older")):
        until("it is healthy", lambda: state_of(mesh, "older") == "healthy", 60)
        # then it is named, also by who only looks
        assert "the worker of older is of an earlier version" in refused(mesh)
        assert "the worker of older (healthy) is of an earlier version" in mesh.weft("upgrade").stdout
        assert 0 == mesh.weft("nodes", "remove", "older", "--force").returncode
    # when nobody is left
    said = until("it is finished", lambda: mesh.weft("upgrade", "finish").stdout)
    # then all formats are raised, and the deploy is taken
    assert f"node.assigned={READS['node.assigned']}" in said
    raised = {each["fact"]["fact"]: each["fact"]["version"] for each in mesh.facts("mesh", "format_raised")}
    assert dict(READS) == raised
    assert "the upgrade is finished" in mesh.weft("upgrade").stdout
    mesh.http.post(f"{mesh.url}/api/engine-profiles", json=profile).raise_for_status()
    mesh.deploy("structured", STRUCTURED).raise_for_status()
    assigned = until("it is assigned", lambda: [e for e in mesh.facts("node", "assigned") if e["fact"]["v"] == 2])
    assert STRUCTURED["engine_args"] == assigned[0]["fact"]["spec"]["engine_args"]
    # and its engine was told of them
    until("it serves", lambda: mesh.ready_replicas("structured"), 60)
    assert "warp warp" == mesh.ask("warp", "structured")
    # and a worker of the version before that joins now is placed what it can read, and nothing else
    with in_background(worker_of_before(mesh, "late")):
        until("it is healthy", lambda: state_of(mesh, "late") == "healthy", 60)
        mesh.weft("nodes", "cordon", "worker-1")
        mesh.deploy("other", STRUCTURED).raise_for_status()
        unplaceable = until("it has no place", lambda: mesh.facts("replica", "unplaceable"), 60)
        assert "has a worker of an earlier version" in json.dumps(unplaceable[-1]["fact"])
        mesh.deploy("simple", {**PLAIN, "selector": {"node.name": "late"}}).raise_for_status()
        until(
            "it is placed there", lambda: [r for r in mesh.replicas() if r["model_name"] == "simple" and r["members"]]
        )
