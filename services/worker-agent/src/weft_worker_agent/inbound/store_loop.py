"""Looks now and then whether more lies in the store than may stay, and has the least used go that nothing needs."""

import asyncio
from typing import Any

from weft_contracts.digest import files_digest
from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.files.model_fetches import ModelFetches, remote_source
from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

LOOK_S = 15.0
_log: Any = get_logger("weft.files")


async def watch_store(own: OwnLog, hosts: Hosts, fetches: ModelFetches, gateway: Gateway) -> None:
    """Look for ever. Nothing goes while the log isn't followed: what it assigns is not known then. Nor while no gateway
    answers: what lies elsewhere is not known then."""

    def needed() -> set[str]:
        return {*used(own, hosts), *own.part.file_wishes.wanted}

    while True:
        await asyncio.sleep(LOOK_S)
        if own.may_decide:
            try:
                await fetches.collect(needed, lambda files: may_go(gateway, files))
            except Exception:  # such as a disk that fails: nothing else here ends of it
                _log.exception("files are not collected")


async def may_go(gateway: Gateway, files: str) -> bool:
    """Whether the mesh can do without this node's copy."""
    try:
        return await gateway.files_may_go(files)
    except (Refused, NotNow) as error:
        _log.info("files stay, since no gateway says that they may go", files=files, why=str(error))
        return False


def used(own: OwnLog, hosts: Hosts) -> frozenset[str]:
    """The `files_digest` of each model that an assignment names or a host runs."""
    specs = [each.fact.spec for each in own.part.assignments.values()]
    return hosts.files | {files_digest(spec) for spec in specs if remote_source(spec) is not None}
