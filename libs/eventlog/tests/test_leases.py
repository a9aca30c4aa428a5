"""Leases: each that was renewed is told once, however often it was, and nothing that stood there before."""

import pytest
from nats.aio.client import Client
from weft_contracts.ids import NodeId
from weft_contracts.subjects import node_lease, service_lease
from weft_contracts.topology import LEASES
from weft_eventlog import Leases, LogUnavailable, apply_stream
from weft_testing.mesh_server import MeshServer


async def renew(root: Client, *subjects: str) -> None:
    """Return once the stream holds them."""
    for subject in subjects:
        await root.publish(subject, b"{}")
    await root.jetstream(timeout=30).publish(LAST, b"{}")


LAST = node_lease(NodeId("n-last"))
A, B, C = (node_lease(NodeId(f"n-{name}")) for name in "abc")


async def test_a_lease_that_was_renewed_a_thousand_times_is_told_once(mesh_server: MeshServer) -> None:
    root, client = await mesh_server.root(), await mesh_server.service("registry")
    leases = Leases(client, "weft.lease.>")
    # given what stood there before the first look
    await renew(root, C)
    assert [] == await leases.renewed()
    # when
    await renew(root, *([A] * 1_000), service_lease("registry.x"), B)
    # then
    assert [A, service_lease("registry.x"), B, LAST] == await leases.renewed()
    assert [] == await leases.renewed()
    await renew(root, A)
    assert [A, LAST] == await leases.renewed()


async def test_more_leases_than_one_answer_holds_are_all_told(mesh_server: MeshServer) -> None:
    root, client = await mesh_server.root(), await mesh_server.service("registry")
    leases = Leases(client, "weft.lease.node.*")
    await leases.renewed()
    every = [node_lease(NodeId(f"n-{number}")) for number in range(5_000)]
    for begin in range(0, len(every), 500):  # fewer than may wait to be stored
        await renew(root, *every[begin : begin + 500])
    assert [*every, LAST] == await leases.renewed()


async def test_a_stream_that_is_gone_is_said_and_a_new_one_is_read_from_its_end(mesh_server: MeshServer) -> None:
    root, client = await mesh_server.root(), await mesh_server.service("registry")
    leases = Leases(client, "weft.lease.>")
    await leases.renewed()
    await renew(root, A)
    await root.jetstream(timeout=30).delete_stream(LEASES.name)
    with pytest.raises(LogUnavailable, match="leases"):
        await leases.renewed()
    await apply_stream(client, LEASES)
    await renew(root, A)
    leases.anew()
    assert [] == await leases.renewed()
    await renew(root, B)
    assert [B, LAST] == await leases.renewed()
