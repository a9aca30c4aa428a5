"""What `/metrics` of a worker tells of its node: devices with their claims, runs, the engines' load, its lease.

Each node tells of itself alone, at its own expense: a mesh of 1,000 nodes is 1,000 small pages.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from weft_contracts.ids import NodeId
from weft_contracts.signals import MemorySaid, ReplicaLoad
from weft_contracts.states import Phase

from weft_worker_agent.domain.own_part import OwnPart
from weft_worker_agent.outbound.mesh.lease import LeaseThread

_DEVICE = ("device", "vendor", "device_name")
_REPLICA = ("model", "replica")


class NodeMetrics(Collector):
    """Looks at what is in memory at each scrape."""

    def __init__(
        self,
        node: NodeId,
        part: Callable[[], OwnPart],
        pressure: Callable[[], Mapping[int, int]],
        held: Callable[[], Iterable[MemorySaid]],
        loads: Callable[[], Iterable[ReplicaLoad]],
        lease: Callable[[], LeaseThread | None],
    ) -> None:
        """`pressure`: bytes that others use, by device; `held`: what replicas hold of the devices that they claim."""
        self._node = node
        self._part = part
        self._pressure = pressure
        self._held = held
        self._loads = loads
        self._lease = lease

    def describe(self) -> Iterable[Metric]:
        """Nothing is looked up when it is registered."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """As it stands."""
        part = self._part()
        yield from self._devices(part)
        phases = Counter(run.phase for run in part.runs.values())
        runs = GaugeMetricFamily("weft_node_runs", "Runs of replicas on this node, by phase", labels=("phase",))
        for phase in get_args(Phase):
            runs.add_metric((phase,), phases[phase])
        yield runs
        yield from self._engines(part)
        lease = self._lease()
        if lease is None:
            return
        if (since := lease.since) is not None:
            yield GaugeMetricFamily(
                "weft_node_lease_age_seconds", "Since this node last gave a sign of life", value=round(since, 1)
            )
        yield GaugeMetricFamily(
            "weft_node_credential_left_seconds",
            "Until this node's credential expires; it is renewed at half of its life",
            value=round(lease.expires_at - time.time()),
        )

    def _devices(self, part: OwnPart) -> Iterable[Metric]:
        memory, claimed, held, pressure = (
            GaugeMetricFamily(f"weft_node_device_{name}_bytes", what, labels=_DEVICE)
            for name, what in (
                ("memory", "Memory of a device"),
                ("claimed", "That replicas claim of it, by the log"),
                ("held", "That replicas hold of it, as far as it is known"),
                ("pressure", "That others than replicas use of it, as far as it is known"),
            )
        )
        claims, holding = Counter[int](), Counter[int]()
        for assignment in part.assignments.values():
            for member in assignment.fact.members:
                if member.node == self._node:
                    for claim in member.devices:
                        claims[claim.index] += claim.bytes
        for said in self._held():
            holding[said.device] += said.used
        used = self._pressure()
        for device in part.reported.hardware.devices if part.reported is not None else ():
            labels = (str(device.index), device.vendor, device.name)
            memory.add_metric(labels, device.memory)
            claimed.add_metric(labels, claims[device.index])
            held.add_metric(labels, holding[device.index])
            if device.index in used:
                pressure.add_metric(labels, used[device.index])
        yield from (memory, claimed, held, pressure)

    def _engines(self, part: OwnPart) -> Iterable[Metric]:
        running, waiting, used = (
            GaugeMetricFamily(f"weft_engine_{name}", what, labels=_REPLICA)
            for name, what in (
                ("running_requests", "Requests that an engine works on"),
                ("waiting_requests", "Requests that wait within an engine"),
                ("kv_used_ratio", "Of an engine's room for contexts that is taken, from 0 to 1"),
            )
        )
        for load in self._loads():
            assignment = part.assignments.get(load.replica)
            if assignment is None:
                continue
            labels = (assignment.fact.model_name, load.replica)
            running.add_metric(labels, load.running)
            waiting.add_metric(labels, load.waiting)
            used.add_metric(labels, load.kv_used)
        yield from (running, waiting, used)
