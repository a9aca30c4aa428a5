"""Looks now and then whether more lies in the store than may stay, and has the least used go that nothing needs."""

import asyncio

from weft_contracts.digest import files_digest

from weft_worker_agent.outbound.files.model_fetches import ModelFetches, remote_source
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

LOOK_S = 15.0


async def watch_store(own: OwnLog, hosts: Hosts, fetches: ModelFetches) -> None:
    """Look for ever. Nothing goes while the log isn't followed: what it assigns is not known then."""
    while True:
        await asyncio.sleep(LOOK_S)
        if own.may_decide:
            await fetches.collect({*used(own, hosts), *own.part.file_wishes.wanted})


def used(own: OwnLog, hosts: Hosts) -> frozenset[str]:
    """The `files_digest` of each model that an assignment names or a host runs."""
    specs = [each.fact.spec for each in own.part.assignments.values()]
    return hosts.files | {files_digest(spec) for spec in specs if remote_source(spec) is not None}
