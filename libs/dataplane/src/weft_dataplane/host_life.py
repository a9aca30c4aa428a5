"""Which replica a host is and where it stands in its life, for sessions and for the agent that watches."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from weft_contracts.gen import session_pb2 as pb


@dataclass(frozen=True, slots=True)
class Identity:
    """What a session must name to be let in."""

    replica: str
    incarnation: str
    revision_digest: str
    rank: int = 0
    """of a group; sessions are for its leader, rank 0"""


@dataclass(slots=True)
class HostLife:
    """The host's phase. A change wakes those who watch it."""

    identity: Identity
    phase: pb.Phase.ValueType = pb.PHASE_STARTING
    reason: str = ""
    permanent: bool = False
    watchers: int = 0
    """open Watch streams"""
    asks: bool = False
    """the host itself asks its engine for a sign of life: that is work, whatever the engine counts"""
    signs: int = 0
    """looks at an engine that has work which its own steps say nothing of: they count as steps, for the agent"""
    on_retire: Callable[[], None] | None = None
    """called once, when the agent asks to retire"""
    on_watchers: Callable[[], None] | None = None
    """called when a Watch stream opens or closes"""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def move(self, phase: pb.Phase.ValueType, reason: str = "", *, permanent: bool = False) -> None:
        """Enter a phase. Retiring and failed are not left again for ready."""
        if self.phase in (pb.PHASE_RETIRING, pb.PHASE_FAILED) and phase == pb.PHASE_READY:
            return
        self.phase, self.reason, self.permanent = phase, reason, permanent
        self._changed.set()
        self._changed = asyncio.Event()

    def retire(self) -> None:
        """Refuse new requests from now on."""
        if self.phase not in (pb.PHASE_RETIRING, pb.PHASE_FAILED):
            self.move(pb.PHASE_RETIRING)
            if self.on_retire is not None:
                self.on_retire()

    async def changed(self, timeout: float) -> None:
        """Wait for the next change, at most `timeout` seconds."""
        try:
            await asyncio.wait_for(self._changed.wait(), timeout)
        except TimeoutError:
            return
