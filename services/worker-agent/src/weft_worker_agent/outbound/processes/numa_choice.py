"""Chooses a NUMA node for a host that starts, among those that are kept to one already."""

import zlib
from collections.abc import Sequence
from pathlib import Path

from weft_contracts.facts.values import DeviceClaim
from weft_contracts.ids import NodeId

from weft_worker_agent.domain.claimed_devices import PROCESSOR
from weft_worker_agent.domain.numa import Bound, Need, NumaNode, chosen
from weft_worker_agent.domain.steering import Start
from weft_worker_agent.outbound.machine.numa_nodes import node_of


class NumaChoice:
    """What there is to choose from on this machine; nothing is chosen where it has no nodes."""

    def __init__(
        self,
        node: NodeId,
        nodes: Sequence[NumaNode] = (),
        threads: int = 1,
        root: Path = Path("/"),
    ) -> None:
        """`threads`: with which each engine computes; `root`: of the system's own files."""
        self._node = node
        self._nodes = nodes
        self._threads = threads
        self._root = root

    def of(self, start: Start, bound: Sequence[Bound]) -> tuple[NumaNode, Bound] | None:
        """The node that a host is to be kept to, and what then counts there; None: it is kept to none.

        `bound`: the living hosts that are kept to one.
        """
        if not self._nodes:
            return None
        claims = start.assignment.fact.member(self._node).devices
        bytes = sum(claim.bytes for claim in claims if claim.index == PROCESSOR)
        need = Need(bytes, self._threads, self._beside(start, claims))
        first = zlib.crc32(self._node.encode()) % len(self._nodes)
        found = chosen(self._nodes, bound, need, first)
        return (found, Bound(found.index, bytes)) if found is not None else None

    def _beside(self, start: Start, claims: Sequence[DeviceClaim]) -> frozenset[int | None]:
        """The nodes of the claimed accelerators."""
        hardware = start.reported.hardware if start.reported is not None else None
        at = {device.index: device.pci for device in hardware.devices} if hardware is not None else {}
        return frozenset(node_of(at.get(each.index, ""), self._root) for each in claims if each.index != PROCESSOR)
