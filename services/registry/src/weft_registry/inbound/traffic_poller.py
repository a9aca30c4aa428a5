"""What nodes send, as the servers and the log tell it: who sends more than its share is shut out at once.

The servers are asked, not the messages heard: they answer within milliseconds whatever passes there, and count all of
it, also what is refused. Twice a second they say what all workers sent together (1 ms in all); each connection is
looked at where that is much, and every ten seconds (some 20 µs a connection).
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from weft_contracts.commit import Recorded
from weft_contracts.facts.node import CutOff, Removed, Resumed
from weft_contracts.ids import NodeId
from weft_eventlog import LogUnavailable
from weft_runtime.leadership import Leadership
from weft_runtime.logs import get_logger

from weft_registry.domain.cut_off import may_be_cut_off
from weft_registry.domain.rate_monitor import Connection, RateMonitor, Shares, Totals
from weft_registry.domain.state import RegistryState
from weft_registry.outbound.revocations import Revocations
from weft_registry.outbound.system_account import SystemAccount

_log: Any = get_logger("weft.registry.traffic")
_LOOK = 0.5
_LOOK_CLOSELY = 10.0


class TrafficPoller:
    """Watches while this instance leads. Without trust there is nobody to ask, and only facts are counted."""

    def __init__(
        self,
        state: RegistryState,
        shares: Shares,
        leadership: Leadership,
        system: SystemAccount | None,
        revocations: Revocations | None,
    ) -> None:
        self._state = state
        self._monitor = RateMonitor(shares)
        self._leadership = leadership
        self._system = system
        self._revocations = revocations
        self._shut: set[NodeId] = set()
        self._began = time.time()
        self._totals: Totals | None = None
        self._looked = self._closely = float("-inf")

    @property
    def floods(self) -> Mapping[NodeId, str]:
        """Who sends more than its share, and what, until the log says that it is cut off."""
        return self._monitor.floods

    def folded(self, commits: Sequence[Recorded]) -> None:
        """Count what nodes append. A log that is folded anew is no flood, nor is what came before a node's return."""
        for commit in commits:
            kind = commit.aggregate.kind
            if kind in ("run", "machine") and commit.at > self._began:
                self._monitor.facts(
                    NodeId(commit.aggregate.key.partition(".")[0]), max(1, len(commit.facts)), commit.at
                )
            elif kind == "node" and any(isinstance(fact, CutOff | Resumed | Removed) for fact in commit.facts):
                node = NodeId(commit.aggregate.key)
                self._monitor.forget([node])
                self._shut.discard(node)

    async def run(self) -> None:
        """Look, and shut out who floods, for ever."""
        while True:
            if self._leadership.held:
                try:
                    if self._system is not None:
                        await self._look(self._system)
                    await self._shut_out()
                except LogUnavailable as error:
                    _log.warning("what nodes send is not known", error=str(error))
            await asyncio.sleep(_LOOK)

    async def _look(self, system: SystemAccount) -> None:
        said = await system.totals()
        received = [each["received"] for each in said]
        totals = Totals(
            sum(int(each["conns"]) for each in said),
            sum(int(each["msgs"]) for each in received),
            sum(int(each["bytes"]) for each in received),
        )
        now = time.monotonic()
        before, since, self._totals, self._looked = self._totals, now - self._looked, totals, now
        nodes = len(self._state.fleet.nodes)
        if before is None or now - self._closely >= _LOOK_CLOSELY or totals.above_usual(before, since, nodes):
            await self._look_closely(system)

    async def _look_closely(self, system: SystemAccount) -> None:
        by_key = {node.public_key: node.id for node in self._state.fleet.nodes.values()}
        connections = [
            Connection(server, int(one["cid"]), node, int(one["in_msgs"]), int(one["out_msgs"]), int(one["in_bytes"]))
            for server, one in await system.connections()
            if (node := by_key.get(one.get("authorized_user", ""))) is not None
        ]
        self._closely = time.monotonic()
        self._monitor.look(connections, self._closely)

    async def _shut_out(self) -> None:
        nodes = self._state.fleet.nodes
        self._monitor.forget([node for node in self.floods if not may_be_cut_off(nodes.get(node))])
        due = self.floods.keys() - self._shut
        if due and self._revocations is not None:
            for node in due:
                _log.warning("a node floods and is cut off", node=node, why=self.floods[node])
            await self._revocations.cut(due)
            self._shut |= due
