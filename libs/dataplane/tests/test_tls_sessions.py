"""Sessions over TLS on real sockets: who is let in, whom a gateway believes, and what a renewal does."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from weft_contracts import certificates
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.ids import NodeId
from weft_dataplane import EngineServicer, HostLife, SessionClient, SessionLost, make_server, watch_host
from weft_dataplane.scripted import HELLO, IDENTITY, Collector, ScriptedEngine, served
from weft_dataplane.tls import Admission, Certificates, names_node
from weft_identity import authority
from weft_identity.authority import Authority

NODE, OTHER = NodeId("n-1"), NodeId("n-2")


class World:
    """Two meshes' authorities, folders of certificates, and a host on the first mesh's node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mesh = self._authority("mesh")
        self.foreign = self._authority("foreign")
        self.engine = ScriptedEngine()
        self.target = ""

    def _authority(self, name: str) -> Authority:
        (self.folder / name).mkdir()
        return authority.load_or_make(self.folder / name)

    def bearer(self, name: str, role: str, *, by: Authority | None = None, lasts_s: float = 600) -> Certificates:
        (by or self.mesh).lay_out(self.folder / name, role, lasts_s=lasts_s)
        return Certificates(self.folder / name)

    def gateway(self) -> Certificates:
        return self.bearer("gateway", certificates.GATEWAY)

    async def open(self, bearer: Certificates, node: NodeId = NODE) -> SessionClient:
        return await SessionClient.open(self.target, HELLO, credentials=bearer.channel(), names=names_node(node))

    @asynccontextmanager
    async def host(self) -> AsyncGenerator[None]:
        bearer = self.bearer("host", certificates.node_role(NODE))
        servicer = EngineServicer(HostLife(IDENTITY), admission=Admission(NODE))
        servicer.attach(self.engine)
        servicer.life.move(pb.PHASE_READY)
        server, port = make_server(servicer, "127.0.0.1", 0, bearer.server())
        await server.start()
        self.target = f"127.0.0.1:{port}"
        try:
            yield
        finally:
            await server.stop(0)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    world = World(tmp_path)
    async with world.host():
        yield world


async def refusal(work: Any) -> str:
    with pytest.raises(SessionLost) as refused:
        await work
    return str(refused.value)


async def test_a_gateways_certificate_opens_a_session_with_the_node_that_it_names(world: World) -> None:
    client = await world.open(world.gateway())
    sink = Collector()
    client.submit(pb.Submit(text="hello"), sink)
    await world.engine.has(1)
    world.engine.step("said")
    world.engine.finish_all()
    await sink.end()

    assert "said" == sink.text
    await client.close()


@pytest.mark.parametrize("role", ["node/n-2", "node/n-1", "metadata-cache", "registry"])
async def test_who_is_no_gateway_gets_no_session_and_is_told_why(world: World, role: str) -> None:
    said = await refusal(world.open(world.bearer("impostor", role)))

    assert "takes sessions from gateways" in said
    assert f"names {role}" in said


async def test_a_gateway_does_not_believe_another_nodes_certificate(world: World) -> None:
    assert "names another node" in await refusal(world.open(world.gateway(), OTHER))


async def test_a_gateway_of_another_mesh_believes_no_host_of_this_one(world: World) -> None:
    bearer = world.bearer("foreign-gateway", certificates.GATEWAY, by=world.foreign)

    assert "not of this mesh's authority" in await refusal(world.open(bearer))


async def test_a_certificate_of_another_mesh_is_not_let_in(world: World) -> None:
    bearer = world.bearer("foreign-gateway", certificates.GATEWAY, by=world.foreign)
    (world.folder / "foreign-gateway" / certificates.AUTHORITY).write_text(world.mesh.pem)  # it believes this mesh

    assert "refused as expired or of another mesh" in await refusal(world.open(bearer))


async def test_an_expired_certificate_is_not_let_in(world: World) -> None:
    bearer = world.bearer("late", certificates.GATEWAY, lasts_s=-1)

    assert "refused as expired or of another mesh" in await refusal(world.open(bearer))


async def test_an_expired_host_is_not_believed(world: World) -> None:
    world.bearer("host", certificates.node_role(NODE), lasts_s=-1)

    assert "has expired" in await refusal(world.open(world.gateway()))


async def test_a_plain_gateway_hears_that_one_side_speaks_tls(world: World) -> None:
    assert "one side speaks TLS" in await refusal(SessionClient.open(world.target, HELLO))


async def test_a_gateway_hears_that_a_host_does_not_speak_tls(world: World) -> None:
    async with served() as plain:
        world.target = plain.target
        assert "does not speak TLS" in await refusal(world.open(world.gateway()))


async def test_a_stream_goes_on_over_a_renewal_and_the_next_session_sees_the_new_certificate(world: World) -> None:
    # given a stream that runs
    bearer = world.gateway()
    client = await world.open(bearer)
    sink = Collector()
    client.submit(pb.Submit(text="hello"), sink)
    await world.engine.has(1)
    world.engine.step("one ")
    # when both ends get new keys and certificates, and the host's is another node's, so that it can be told apart
    world.gateway()
    world.bearer("host", certificates.node_role(OTHER))
    # then a new session is shown the new one
    later = await world.open(bearer, OTHER)
    assert "names another node" in await refusal(world.open(bearer, NODE))
    # and the stream has noticed nothing
    world.engine.step("two")
    world.engine.finish_all()
    await sink.end()
    assert "one two" == sink.text
    await asyncio.gather(client.close(), later.close())


async def test_a_host_is_watched_by_its_own_nodes_agent_alone(world: World) -> None:
    async def first(bearer: Certificates) -> pb.HostStatus:
        statuses = watch_host(world.target, "i-1", credentials=bearer.channel(), names=names_node(NODE))
        try:
            return await anext(statuses)
        finally:
            await statuses.aclose()

    assert pb.PHASE_READY == (await first(world.bearer("agent", certificates.node_role(NODE)))).phase
    assert "its own node's agent" in await refusal(first(world.bearer("other", certificates.node_role(OTHER))))
    assert "its own node's agent" in await refusal(first(world.gateway()))
