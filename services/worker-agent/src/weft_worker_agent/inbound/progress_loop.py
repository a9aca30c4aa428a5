"""Looks how far loading engines are, and puts together what this node tells of its fetches, loads and the like."""

import asyncio
import random
import time

from weft_contracts.ids import Incarnation, NodeId
from weft_contracts.signals import LoadSaid, NodeProgress

from weft_worker_agent.domain.node_progress import WeightsTaken, taken_more, told
from weft_worker_agent.outbound.backends.installer import Installer
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.outbound.processes.weights_taken import weights_taken

_LOOK_S = 1.0
_REST = 20.0
"""A look that took long is followed by so many times that of rest: it holds up the engine that it looks at."""


class ProgressWatch:
    """Of all hosts and installs of this node."""

    def __init__(self, node: NodeId, hosts: Hosts, installer: Installer | None, overdue_s: float) -> None:
        """`overdue_s`: from so many seconds on an install is said to be overdue."""
        self._node = node
        self._hosts = hosts
        self._installer = installer
        self._overdue_s = overdue_s
        self._taken: dict[Incarnation, WeightsTaken] = {}

    async def run(self) -> None:
        """Look for ever, at those that load alone."""
        while True:
            began = time.monotonic()
            loading = self._hosts.loading()
            self._taken = {each.incarnation: self._taken.get(each.incarnation, WeightsTaken()) for each in loading}
            for each in loading:
                taken = await asyncio.to_thread(weights_taken, each.pid, each.model)
                if taken is not None:
                    before = self._taken[each.incarnation]
                    self._taken[each.incarnation] = taken_more(before, min(taken, each.size), time.monotonic())
            took = time.monotonic() - began
            await asyncio.sleep(max(_LOOK_S, _REST * took) * random.uniform(0.8, 1.2))

    def now(self) -> NodeProgress:
        """As it stands."""
        at = time.monotonic()
        loads: list[LoadSaid] = []
        for each in self._hosts.loading():
            taken = self._taken.get(each.incarnation)
            if taken is not None and taken.first_at is not None:
                seconds = at - taken.first_at
                loads.append(
                    LoadSaid(replica=each.replica, taken=taken.bytes, total=each.size, loading_s=round(seconds, 1))
                )
        installs = self._installer.said(self._overdue_s) if self._installer is not None else ()
        fetches = self._hosts.starts.fetches
        return told(self._node, installs, loads, self._hosts.memory(), fetches.said() if fetches is not None else ())
