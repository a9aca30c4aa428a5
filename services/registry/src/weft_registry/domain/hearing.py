"""What the registry has heard: silence is only what it could have heard, on its own monotonic clock."""

from dataclasses import dataclass, field

from weft_contracts.ids import NodeId


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds of silence until a node is called unhealthy, and offline; and before judging at all."""

    unhealthy: float = 4.0
    offline: float = 7.0
    after_start: float = 30.0
    after_return: float = 10.0
    """After a reconnect, a new server, a stream made anew."""
    own_echo: float = 5.0
    """The registry hears when its own lease came round within so many seconds."""


@dataclass(slots=True)
class Hearing:
    """When each node was last heard. All times are seconds on one monotonic clock."""

    patience: Patience
    deaf_until: float
    """No silence is judged before this moment."""
    heard: dict[NodeId, float] = field(default_factory=dict[NodeId, float])
    _echo: float | None = None
    _counted_from: float = 0.0

    @classmethod
    def begin(cls, now: float, patience: Patience) -> "Hearing":
        """The registry has just started."""
        return cls(patience, deaf_until=now + patience.after_start)

    def note(self, node: NodeId, now: float) -> None:
        """A node's lease came in."""
        self.heard[node] = now

    def echo(self, now: float) -> None:
        """The registry's own lease came back to it: what came meanwhile would have come too.

        After a gap nothing can be said of it, so silence counts anew from here.
        """
        if self._echo is None or now - self._echo > self.patience.own_echo:
            self.interrupted(now)
        self._echo = now

    def interrupted(self, now: float) -> None:
        """The registry was cut off, or the server or its streams are new: silence counts anew from now."""
        self._counted_from = now
        self.deaf_until = max(self.deaf_until, now + self.patience.after_return)

    def hears(self, now: float) -> bool:
        """Whether silence means anything now."""
        return now >= self.deaf_until and self._echo is not None and now - self._echo <= self.patience.own_echo

    def silence(self, node: NodeId, now: float) -> float | None:
        """Seconds of silence that could have been broken; None where nothing can be said."""
        if not self.hears(now):
            return None
        return now - max(self.heard.get(node, self._counted_from), self._counted_from)

    def alive(self, node: NodeId, now: float) -> bool:
        """Whether a lease came lately. A sign of life counts at once, also while silence doesn't."""
        return now - self.heard.get(node, float("-inf")) < self.patience.unhealthy
