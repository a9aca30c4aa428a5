"""Looks whether engines keep to what they claim of the machine's memory."""

import asyncio
import random

from weft_contracts.ids import NodeId, ReplicaId

from weft_worker_agent.outbound.machine.memory_use import held_with_children
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

_LOOK_S = 5.0


async def watch_claims(node: NodeId, own: OwnLog, hosts: Hosts) -> None:
    """Look for ever. A replica that claims an accelerator alone is not looked at: it has claimed none of this."""
    while True:
        await asyncio.sleep(_LOOK_S * random.uniform(0.8, 1.2))
        claims = _claims(node, own)
        if pids := [pid for replica, pid in hosts.answering() if replica in claims]:
            held = await asyncio.to_thread(held_with_children, pids)
            hosts.note_memory(claims, held)


def _claims(node: NodeId, own: OwnLog) -> dict[ReplicaId, tuple[int, int]]:
    """The processor's index and the bytes that are claimed there, by replica."""
    reported = own.part.reported
    if reported is None:
        return {}
    processor = {device.index for device in reported.hardware.devices if device.vendor == "cpu"}
    return {
        replica: (claim.index, claim.bytes)
        for replica, assignment in own.part.assignments.items()
        for claim in assignment.fact.member(node).devices
        if claim.index in processor
    }
