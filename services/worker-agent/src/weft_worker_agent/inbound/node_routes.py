"""All that a node's own server answers besides health and metrics."""

from collections.abc import Sequence
from pathlib import Path

from starlette.routing import BaseRoute
from weft_runtime import web

from weft_worker_agent.inbound.file_server import FileServer
from weft_worker_agent.inbound.files import card_route, metadata_route
from weft_worker_agent.inbound.log_tails import LogTails
from weft_worker_agent.inbound.node_server import Roles
from weft_worker_agent.inbound.uploads import Uploads
from weft_worker_agent.outbound.files.node_files import NodeFiles
from weft_worker_agent.outbound.mesh.readers import Readers
from weft_worker_agent.outbound.processes.hosts import Hosts


def node_routes(
    logs: Path,
    hosts: Hosts,
    files: NodeFiles,
    readers: Readers,
    heard: Sequence[str],
    *,
    roles: Roles | None,
    most: int,
) -> list[BaseRoute]:
    """`logs`: the folder of replicas' logs; `heard`: the subjects that the agent hears; `roles`, `most`: see
    `FileServer`."""
    return [
        metadata_route(hosts.offer),
        card_route(hosts.offer_of_model),
        LogTails(logs).route,
        Uploads(files.arrivals, files.fetches).route,
        FileServer(files.offered, readers, roles=roles, most=most).route,
        web.asyncapi_route("worker", lambda: heard),
    ]
