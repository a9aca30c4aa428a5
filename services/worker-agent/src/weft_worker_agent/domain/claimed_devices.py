"""From what an assignment claims to what its host is told: which devices, as their vendors know them."""

from dataclasses import dataclass

from weft_contracts.facts.machine import Reported
from weft_contracts.facts.values import Vendor
from weft_contracts.ids import NodeId

from weft_worker_agent.domain.own_part import Assignment

PROCESSOR = 0
"""Its index on every node. It has no other name, and is never gone."""


class DeviceGone(Exception):
    """A claimed device isn't there any more; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class ClaimedDevice:
    """One device of this node, and the bytes of its memory that a replica holds."""

    vendor: Vendor
    number: int | None
    uuid: str
    bytes: int
    pci: str = ""


def claimed_devices(assignment: Assignment, node: NodeId, reported: Reported | None) -> tuple[ClaimedDevice, ...]:
    """What a replica claims on this node, in the claim's order. Raises DeviceGone.

    `reported`: what this node said last of its devices; None: nothing yet.
    """
    known = {device.index: device for device in reported.hardware.devices} if reported is not None else {}
    found: list[ClaimedDevice] = []
    for claim in assignment.fact.member(node).devices:
        if claim.index == PROCESSOR:
            found.append(ClaimedDevice("cpu", None, "", claim.bytes))
            continue
        if (device := known.get(claim.index)) is None:
            raise DeviceGone(f"device {claim.index}, which the replica was placed on, is not there any more")
        found.append(ClaimedDevice(device.vendor, device.number, device.uuid, claim.bytes, device.pci))
    return tuple(found)
