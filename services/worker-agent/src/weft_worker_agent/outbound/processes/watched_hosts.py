"""The engine hosts of this node as they are watched: what they are, what they hold, whether they get on."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft_contracts.card import slug_of
from weft_contracts.ids import Incarnation, ReplicaId
from weft_contracts.signals import MemorySaid, ReplicaLoad
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.claim_use import ClaimUse, looked
from weft_worker_agent.domain.hosts import Host
from weft_worker_agent.domain.loading import seen
from weft_worker_agent.domain.node_progress import memory_told
from weft_worker_agent.domain.stall import LOOK_FROM_S, StallBounds
from weft_worker_agent.outbound.files.metadata import Offer
from weft_worker_agent.outbound.machine.memory_kills import memory_kills
from weft_worker_agent.outbound.processes.host_entry import HostContext, HostEntry, LoadingHost
from weft_worker_agent.outbound.processes.load_progress import activity, taken_in

_log: Any = get_logger("weft.hosts")


class WatchedHosts:
    """All hosts that this agent started or found. Methods are called on the loop."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._entries: dict[Incarnation, HostEntry] = {}
        self._kills = deque([memory_kills()], maxlen=3)
        """The last looks, so that the first of them is older than the end that is explained by what came since."""

    def view(self) -> list[Host]:
        """The hosts as the rules see them, oldest first."""
        return [entry.host for entry in self._entries.values()]

    def loads(self) -> tuple[ReplicaLoad, ...]:
        """The last load of each living host that told one."""
        return tuple(e.load for e in self._entries.values() if e.load is not None and e.host.lives)

    def pids(self) -> list[int]:
        """Of the processes of all living hosts."""
        return [e.pid for e in self._entries.values() if e.pid is not None and e.host.lives]

    def answering(self) -> list[tuple[ReplicaId, int]]:
        """The living hosts whose engine has answered, with their processes."""
        entries = [e for e in self._entries.values() if e.host.lives and e.host.answering is not None]
        return [(e.host.replica, e.pid) for e in entries if e.pid is not None]

    def note_memory(self, claims: Mapping[ReplicaId, tuple[int, int]], held: Mapping[int, int]) -> None:
        """What hosts hold of the machine's memory, by process; `claims` are the device and the bytes, by replica."""
        now = self._context.clock()
        for entry in self._entries.values():
            claim = claims.get(entry.host.replica)
            if claim is None or not entry.host.lives or (pid := entry.pid) is None or pid not in held:
                continue
            before = entry.host.use or ClaimUse(*claim)
            use = looked(before, held[pid], now)
            entry.memory[claim[0]] = memory_told(entry.memory.get(claim[0]), held[pid], claim[1])
            entry.host = replace(entry.host, use=use)
            if use.exceeds != before.exceeds:
                _log.warning(
                    "host exceeds its claim", replica=entry.host.replica, claimed=use.claimed, used=use.exceeds
                )
                self._context.wake()

    def note_accelerator(self, device: int, claims: Mapping[ReplicaId, int], held: Mapping[int, int | None]) -> None:
        """What hosts hold of one accelerator, by process; None: its driver doesn't say. `claims`: bytes by replica."""
        for entry in self._entries.values():
            claimed, used = claims.get(entry.host.replica), held.get(entry.pid or 0)
            if claimed is None or used is None:
                entry.memory.pop(device, None)
            elif entry.host.lives:
                entry.memory[device] = memory_told(entry.memory.get(device), used, claimed)

    def memory(self) -> tuple[MemorySaid, ...]:
        """What living hosts hold of the devices that they claim, as far as it is known."""
        living = [entry for entry in self._entries.values() if entry.host.lives]
        return tuple(
            MemorySaid(replica=entry.host.replica, device=device, used=used)
            for entry in living
            for device, used in sorted(entry.memory.items())
        )

    def loading(self) -> list[LoadingHost]:
        """The living hosts that load a model's files."""
        return [loads for entry in self._entries.values() if (loads := entry.loads) is not None]

    @property
    def excess(self) -> int:
        """Bytes of the machine's memory that living hosts hold beyond their claims."""
        uses = [e.host.use for e in self._entries.values() if e.host.lives and e.host.use is not None]
        return sum(use.excess for use in uses)

    def offer(self, replica: str, name: str) -> Offer | None:
        """The metadata file that a living run of a replica registered under a name."""
        entries = (entry for entry in self._published() if entry.host.replica == replica)
        return next((offer for entry in entries for offer in entry.offers or () if offer.file.name == name), None)

    def offer_of_model(self, slug: str, name: str, checksum: str) -> Offer | None:
        """The one that a living run of a model registered, the latest first; of this checksum, if one is given."""
        for entry in reversed([entry for entry in self._published() if slug_of(entry.identity.model) == slug]):
            for offer in entry.offers or ():
                if offer.file.name == name and checksum in ("", f"blake3:{offer.file.blake3}"):
                    return offer
        return None

    def _published(self) -> list[HostEntry]:
        """The living hosts whose files this node's server offers."""
        if not self._context.self_host:
            return []
        return [e for e in self._entries.values() if e.host.lives and e.host.answering is not None]

    async def watch_loads(self, every_s: float) -> None:
        """Look every so often whether those that load get on, for ever."""
        while True:
            await asyncio.sleep(every_s)
            living = [e for e in self._entries.values() if e.host.lives and e.host.answering is None]
            loading = [e for e in living if not e.host.prepares]
            for entry in loading:
                taken = await asyncio.to_thread(taken_in, entry.pid) if entry.pid is not None else None
                if taken is not None:
                    entry.progress = seen(entry.progress, taken, self._context.clock())
                    entry.host = replace(entry.host, grew_at=entry.progress.grew_at)

    async def watch_pulses(self, bounds: StallBounds) -> None:
        """Notice stalls, for ever. Time in which the agent itself stood still is no host's."""
        every_s = min(1.0, bounds.still_s / 5)
        last = self._context.clock()
        while True:
            await asyncio.sleep(every_s)
            now = self._context.clock()
            seconds, last = min(now - last, 2 * every_s), now
            self._kills.append(memory_kills())
            for entry in [e for e in self._entries.values() if e.host.lives]:
                before, now_seen = entry.activity, None
                if entry.pulse.still_s >= LOOK_FROM_S and entry.pid is not None:
                    now_seen = await asyncio.to_thread(activity, entry.pid)
                entry.activity = now_seen
                works = before is not None and now_seen is not None and now_seen.works_since(before, seconds)
                if entry.host.lives:
                    entry.time_passed(seconds, bounds, computes=works)
