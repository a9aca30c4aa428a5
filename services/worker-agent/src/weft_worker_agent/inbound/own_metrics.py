"""Lets `/metrics` tell of this node and of its agent."""

from collections.abc import Callable

from prometheus_client import REGISTRY
from weft_runtime.health import Health
from weft_runtime.service_metrics import ServiceMetrics

from weft_worker_agent.inbound.file_metrics import show_files
from weft_worker_agent.inbound.log_connection import LogConnection
from weft_worker_agent.inbound.node_metrics import NodeMetrics
from weft_worker_agent.inbound.pressure_loop import PressureWatch
from weft_worker_agent.outbound.files.node_files import NodeFiles
from weft_worker_agent.outbound.mesh.identity import NodeIdentity
from weft_worker_agent.outbound.mesh.lease import LeaseThread
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog


def show_metrics(
    identity: NodeIdentity,
    files: NodeFiles,
    own: OwnLog,
    hosts: Hosts,
    pressure: PressureWatch | None,
    health: Health,
    *,
    lease: Callable[[], LeaseThread | None],
    connection: Callable[[], LogConnection | None],
) -> None:
    """Once in a process. `lease` and `connection`: as they are when somebody looks."""
    show_files(files.fetches)
    REGISTRY.register(
        NodeMetrics(
            identity.node,
            lambda: own.part,
            lambda: {i: one.settled or 0 for i, one in pressure.now.items()} if pressure is not None else {},
            hosts.memory,
            hosts.loads,
            lease,
        )
    )

    def reporting() -> bool:
        now = connection()
        return now is not None and now.reporting is not None

    REGISTRY.register(ServiceMetrics("worker-agent", health, reporting))
