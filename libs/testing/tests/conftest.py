"""One server with the mesh's walls for all tests of a module; each test has its own clients."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from weft_contracts.ids import NodeId
from weft_contracts.topology import worker_durable
from weft_eventlog import apply_durable, apply_topology
from weft_testing.mesh_server import MeshServer

ONE, TWO = NodeId("n-one"), NodeId("n-two")


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
