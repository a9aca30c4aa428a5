"""Looks every so often whether a secret that something here names has another value, and tells who runs with it."""

import asyncio
import random

from weft_contracts.secrets import secrets_in

from weft_worker_agent.outbound.mesh.node_secrets import NodeSecrets
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

_UNREADY_S = 1.0


class SecretsLoop:
    """One look costs a call to the gateway for each secret that is named here, and none where none is."""

    def __init__(self, own: OwnLog, hosts: Hosts, secrets: NodeSecrets, every_s: float) -> None:
        self._own = own
        self._hosts = hosts
        self._secrets = secrets
        self._every_s = every_s

    async def run(self) -> None:
        """Look for ever. Raises SupervisorGone."""
        while True:
            if not self._own.may_decide:
                await asyncio.sleep(_UNREADY_S)
                continue
            await self.turn()
            await asyncio.sleep(self._every_s * random.uniform(0.8, 1.2))

    async def turn(self) -> None:
        """One look: what is newer goes to every host that runs with it."""
        assignments = self._own.part.assignments.values()
        named = {each.replica: secrets_in(each.fact.spec.engine_args) for each in assignments}
        held = await self._secrets.refreshed(frozenset[str]().union(*named.values()))
        for replica, names in named.items():
            if names:
                await self._hosts.tell_secrets(replica, {name: held[name] for name in names if name in held})
