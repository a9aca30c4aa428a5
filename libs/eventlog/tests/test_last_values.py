"""Last values: what was said anew is told with what it says, once, however often it was said."""

from weft_contracts.ids import NodeId
from weft_contracts.subjects import node_signal
from weft_contracts.topology import SIGNALS
from weft_eventlog import LastValue, LastValues
from weft_testing.mesh_server import MeshServer

A, B = (node_signal(NodeId(f"n-{name}"), "progress") for name in "ab")


async def test_a_gateway_reads_the_last_that_each_node_said(mesh_server: MeshServer) -> None:
    # given signals that stood there before the first look, and another sort of signal
    root, client = await mesh_server.root(), await mesh_server.service("gateway")
    js = root.jetstream(timeout=30)
    values = LastValues(client, SIGNALS, "weft.sig.node.*.progress", "signals")
    await js.publish(A, b"old")
    assert [] == await values.said()
    # when nodes say something, one of them a thousand times
    for number in range(1_000):
        await root.publish(A, str(number).encode())
    await js.publish(node_signal(NodeId("n-a"), "load"), b"{}")
    await js.publish(B, b"new")
    # then the last of each is told, once
    assert [LastValue(A, b"999"), LastValue(B, b"new")] == await values.said()
    assert [] == await values.said()
