"""Decides which node is silent: only silence that could have been broken counts, on one monotonic clock."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from weft_contracts.ids import NodeId

MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds of silence until a node is called unhealthy, and offline; and before judging at all."""

    unhealthy: float = 4.0
    offline: float = 7.0
    after_start: float = 30.0
    after_return: float = 10.0
    """After a reconnect, a new server, a long gap in its own leases."""
    own_echo: float = 2.5
    """The registry reads leases when its own, renewed once a second, came back within so many seconds."""


@dataclass(frozen=True, slots=True)
class Observations:
    """What is known of the nodes at one moment, beside the log."""

    alive: frozenset[NodeId]
    silence: Mapping[NodeId, float]
    """Seconds, for nodes whose silence means something now; the others are absent."""
    healthy_before: frozenset[NodeId]
    """Nodes that were healthy within the last minute."""
    unbraked: float = float("inf")
    """Seconds since the brake was last seen to hold."""
    floods: Mapping[NodeId, str] = field(default_factory=dict[NodeId, str])
    """Who sends more than a node's share, and what."""


@dataclass(slots=True)
class FailureDetector:
    """When each node last renewed its lease. All times are seconds on one monotonic clock."""

    timeouts: Timeouts
    paused_until: float
    """No silence is judged before this moment."""
    renewed: dict[NodeId, float] = field(default_factory=dict[NodeId, float])
    """When each node's lease was last renewed."""
    healthy: dict[NodeId, float] = field(default_factory=dict[NodeId, float])
    """When each node was last seen to be healthy by the log."""
    _echo: float | None = None
    _counted_from: float = 0.0
    _braked: float = float("-inf")

    @classmethod
    def begin(cls, now: float, timeouts: Timeouts) -> "FailureDetector":
        """The registry has just started."""
        return cls(timeouts, paused_until=now + timeouts.after_start)

    def renew(self, node: NodeId, now: float) -> None:
        """A node's lease came in."""
        self.renewed[node] = now

    def note_healthy(self, nodes: Collection[NodeId], now: float) -> None:
        """These nodes are healthy by the log."""
        self.healthy.update(dict.fromkeys(nodes, now))

    def echo(self, now: float) -> None:
        """The registry's own lease came back to it: what was sent before would have come too.

        After a gap nothing can be said of it, so silence counts anew from here.
        """
        gap = float("inf") if self._echo is None else now - self._echo
        if gap > 2 * self.timeouts.own_echo:
            self.interrupted(now)
        elif gap > self.timeouts.own_echo:
            self._counted_from = now
        self._echo = now

    def interrupted(self, now: float) -> None:
        """The registry was cut off, or the server or its streams are new: silence counts anew from now."""
        self._counted_from = now
        self.paused_until = max(self.paused_until, now + self.timeouts.after_return)

    def can_judge(self, now: float) -> bool:
        """Whether silence means anything now."""
        return now >= self.paused_until and self._echo is not None and now - self._echo <= self.timeouts.own_echo

    def silence(self, node: NodeId, now: float) -> float | None:
        """Seconds of silence that could have been broken; None where nothing can be said.

        It counts up to the last echo: of what came after nobody knows yet whether it could have been heard.
        """
        if self._echo is None or not self.can_judge(now):
            return None
        return max(0.0, self._echo - max(self.renewed.get(node, self._counted_from), self._counted_from))

    def alive(self, node: NodeId, now: float) -> bool:
        """Whether a lease came lately. A sign of life counts at once, also while silence doesn't."""
        return now - self.renewed.get(node, float("-inf")) < self.timeouts.unhealthy

    def since(self, node: NodeId, now: float) -> float | None:
        """Seconds since a node's last sign of life, whoever could hear it; None: none came since the registry began."""
        renewed = self.renewed.get(node)
        return None if renewed is None else max(0.0, now - renewed)

    def observations(self, nodes: Collection[NodeId], now: float, *, braked: bool) -> Observations:
        """What is known of these nodes now."""
        if braked:
            self._braked = now
        silences = {node: silence for node in nodes if (silence := self.silence(node, now)) is not None}
        return Observations(
            alive=frozenset(node for node in nodes if self.alive(node, now)),
            silence=silences,
            healthy_before=frozenset(n for n in nodes if now - self.healthy.get(n, float("-inf")) <= MINUTE),
            unbraked=now - self._braked,
        )
