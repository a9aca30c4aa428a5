"""One server with the mesh's accounts and permissions for all tests of a module; each test has its own clients."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from nats.aio.client import Client
from nats.js.client import JetStreamContext
from weft_contracts import subjects
from weft_contracts.topology import worker_durable
from weft_eventlog import apply_durable, apply_topology
from weft_eventlog.credentials import put_credential
from weft_testing.mesh_server import MeshServer

from .permission_world import ONE, TWO, look


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshServer]:
    """With the topology, and the durables of two workers."""
    server = MeshServer(tmp_path_factory.mktemp("mesh"))

    async def prepare() -> None:
        root = await server.root()
        await apply_topology(root)
        for node in (ONE, TWO):
            await apply_durable(root, worker_durable(node))
        await server.close_clients()

    asyncio.run(prepare())
    yield server
    server.server.stop()


@pytest.fixture
async def mesh(shared_server: MeshServer) -> AsyncIterator[MeshServer]:
    """The module's server, with no client and no error of the test before."""
    shared_server.errors.clear()
    yield shared_server
    await shared_server.close_clients()


@pytest.fixture
async def root(mesh: MeshServer) -> Client:
    return await mesh.root()


@pytest.fixture
async def js(root: Client) -> JetStreamContext:
    """The mesh with something in it: a fact and a lease of node one, and its credential."""
    js = root.jetstream(timeout=30)
    await js.publish("weft.ev.run.n-one.m-1.ready", b"[]")
    await js.publish("weft.ev.run.n-two.m-1.loading", b"[]")
    await js.publish("weft.ev.node.n-two.joined", b"[]")
    await js.publish(subjects.node_lease(ONE), b"{}")
    await put_credential(root, ONE, b"secret")
    return js


@pytest.fixture
async def unchanged(js: JetStreamContext) -> AsyncIterator[None]:
    """Nothing is different after the test."""
    before = await look(js)
    yield
    after = await look(js)
    assert before == after
