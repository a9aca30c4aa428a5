"""What a host is told of the devices that its replica claims."""

from collections.abc import Callable

import pytest
from weft_contracts import subjects
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.values import Device, DeviceClaim, Hardware, Member
from weft_contracts.ids import NodeId
from weft_testing import HandLog
from weft_worker_agent.domain.claimed_devices import ClaimedDevice, DeviceGone, claimed_devices
from weft_worker_agent.domain.own_part import Assignment

GIB = 1 << 30


@pytest.fixture
def assignment(hand_log: HandLog, node: NodeId, assigned: Callable[..., Assigned]) -> Callable[..., Assignment]:
    """An assignment of which this node has the second part, with these claims by index."""

    def make(**claims: int) -> Assignment:
        devices = tuple(DeviceClaim(index=int(index[1:]), bytes=size) for index, size in claims.items())
        members = (
            Member(node=NodeId("n-bbbbbbbbbbbbbbbb"), rank=0, devices=(DeviceClaim(index=9, bytes=1),)),
            Member(node=node, rank=1, devices=devices),
        )
        fact = assigned().model_copy(update={"members": members})
        return Assignment(fact, hand_log.given(subjects.node(node), fact).cause)

    return make


def reported(*devices: Device) -> Reported:
    cpu = Device(index=0, vendor="cpu", name="a processor", memory=8 * GIB)
    hardware = Hardware(cpus=4, memory=8 * GIB, devices=(cpu, *devices))
    return Reported(hardware=hardware, backends=(), builtins=(), agent_version="0")


def test_a_claim_names_this_nodes_devices_as_their_vendor_knows_them(
    assignment: Callable[..., Assignment], node: NodeId
) -> None:
    one = Device(index=4, vendor="nvidia", name="a", memory=GIB, uuid="GPU-a", number=1)
    two = Device(index=2, vendor="nvidia", name="b", memory=GIB, uuid="GPU-b", number=0)

    found = claimed_devices(assignment(_4=600, _2=500), node, reported(one, two))

    assert (ClaimedDevice("nvidia", 1, "GPU-a", 600), ClaimedDevice("nvidia", 0, "GPU-b", 500)) == found


def test_a_claim_on_the_processor_is_of_the_machines_memory(
    assignment: Callable[..., Assignment], node: NodeId
) -> None:
    assert (ClaimedDevice("cpu", None, "", 700),) == claimed_devices(assignment(_0=700), node, reported())


def test_a_device_that_is_gone_is_named_and_nothing_starts_on_another(
    assignment: Callable[..., Assignment], node: NodeId
) -> None:
    left = Device(index=1, vendor="nvidia", name="a", memory=GIB, uuid="GPU-a", number=0)

    with pytest.raises(DeviceGone, match="device 2, which the replica was placed on, is not there any more"):
        claimed_devices(assignment(_1=5, _2=5), node, reported(left))
    with pytest.raises(DeviceGone):
        claimed_devices(assignment(_1=5), node, None)
