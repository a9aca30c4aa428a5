"""How this node starts engine hosts, by its settings: with which engines, processors, files and secrets."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft_contracts.processors import as_list
from weft_runtime import logs

from weft_worker_agent.inbound.own_engines import OwnEngines
from weft_worker_agent.outbound.files.gguf_slots import GgufSlots
from weft_worker_agent.outbound.files.node_files import NodeFiles
from weft_worker_agent.outbound.files.publishing import Publishing
from weft_worker_agent.outbound.machine import inventory
from weft_worker_agent.outbound.machine.numa_nodes import numa_nodes
from weft_worker_agent.outbound.mesh.identity import NodeIdentity
from weft_worker_agent.outbound.mesh.node_secrets import NodeSecrets
from weft_worker_agent.outbound.processes.host_entry import HostContext
from weft_worker_agent.outbound.processes.host_starts import HostStarts
from weft_worker_agent.outbound.processes.numa_choice import NumaChoice
from weft_worker_agent.outbound.processes.supervisor_client import SupervisorClient
from weft_worker_agent.settings import WorkerSettings

_log: Any = logs.get_logger("weft.worker_agent")


def own_starts(
    settings: WorkerSettings,
    identity: NodeIdentity,
    supervisor: SupervisorClient,
    engines: OwnEngines,
    files: NodeFiles,
    node_secrets: NodeSecrets,
    *,
    tls_folder: Path | None,
    changed: Callable[[], None],
) -> HostStarts:
    """`changed` is called when something about a host did."""
    threads = settings.threads(inventory.processors() / settings.parts)
    nodes = numa_nodes(settings.parts) if settings.numa == "bind" else ()
    if nodes:
        _log.info("engines are kept to NUMA nodes", nodes={n.index: as_list(n.processors) for n in nodes})
    return HostStarts(
        HostContext(
            identity.node, settings.http_host, tls_folder, time.monotonic, changed, settings.metadata_self_host
        ),
        supervisor,
        launches=settings.state / "launch",
        pythons={engine: it.python for engine, it in engines.environments.items()},
        engines=inventory.known(engines.environments, engines.installed),
        installer=engines.installer,
        python=settings.engine_python,
        first_port=settings.grpc_port,
        canary_after_s=settings.canary_after,
        secrets=node_secrets,
        threads=threads,
        numa=NumaChoice(identity.node, nodes, threads),
        fetches=files.fetches,
        publishing=Publishing(
            GgufSlots(settings.state / "slots"),
            self_host=settings.metadata_self_host,
            most_bytes=settings.metadata_most_bytes,
        ),
    )
