"""The rates at which nodes send, held against their shares, which lie far above what an honest node does.

A share is a bucket that leaks: so much at once, so much a second for ever. A node that comes back after an outage, or
folds a long history anew, says much at once and then little.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weft_contracts.ids import NodeId

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Share:
    """`burst` at once, and `rate` a second for ever."""

    burst: float
    rate: float


@dataclass(frozen=True, slots=True)
class Shares:
    """Of one node, over all its connections."""

    connections: int = 100
    """At one moment: an agent has two, and one that flaps leaves dead ones behind for minutes."""
    unasked: Share = Share(20_000, 100)
    """Messages without one to it in exchange: leases, load, pulls. An agent sends less than 2 a second."""
    messages: Share = Share(200_000, 1_000)
    """All of them. Most are acknowledgements of a history that is folded anew: as many as it has commits."""
    bytes: Share = Share(128 * MIB, MIB)
    facts: Share = Share(5_000, 2)
    """In the log, for ever: a replica's life has seven, the start of 64 replicas 256."""

    def times(self, factor: float) -> "Shares":
        """So many times as much of everything."""

        def more(share: Share) -> Share:
            return Share(share.burst * factor, share.rate * factor)

        connections = max(1, round(self.connections * factor))
        return Shares(connections, more(self.unasked), more(self.messages), more(self.bytes), more(self.facts))


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection of a node, and what passed over it since it was opened."""

    server: str
    id: int
    node: NodeId
    received: int
    """Messages from the node."""
    sent: int
    """Messages to it."""
    bytes: int
    """From the node."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What all nodes together have open, and have sent since the servers started."""

    connections: int
    messages: int
    bytes: int

    def above_usual(self, before: "Totals", seconds: float, nodes: int) -> bool:
        """Whether somebody may have sent more than a share since then: a reason to look at each connection.

        A server that was started anew counts anew, which is a reason too.
        """
        messages, sent = self.messages - before.messages, self.bytes - before.bytes
        if messages < 0 or sent < 0:
            return True
        usual = 4 * nodes
        more = self.connections > 2 * usual + 50
        return more or messages > (200 + usual) * seconds or sent > (MIB + 1024 * usual) * seconds


@dataclass(slots=True)
class _Bucket:
    level: float = 0.0
    at: float = 0.0

    def pour(self, amount: float, now: float, share: Share) -> bool:
        """True if it runs over."""
        self.level = max(0.0, self.level - share.rate * max(0.0, now - self.at)) + amount
        self.at = max(self.at, now)
        return self.level > share.burst


@dataclass(slots=True)
class RateMonitor:
    """Counts by node. Times are seconds on one clock for connections, and on the log's for facts."""

    shares: Shares
    floods: dict[NodeId, str] = field(default_factory=dict[NodeId, str])
    """Who sent more than its share, and what, for people; until it is forgotten."""
    _before: dict[tuple[str, int], Connection] | None = None
    _looked: float = 0.0
    _buckets: dict[tuple[NodeId, str], _Bucket] = field(default_factory=dict[tuple[NodeId, str], _Bucket])

    def look(self, connections: Iterable[Connection], now: float) -> None:
        """Judge what was sent since the last look; the first one only remembers where all stand."""
        present = {(each.server, each.id): each for each in connections}
        before, seconds = self._before, max(now - self._looked, 0.001)
        self._before, self._looked = present, now
        by_node: dict[NodeId, list[tuple[str, int]]] = {}
        for key, each in present.items():
            by_node.setdefault(each.node, []).append(key)
        for node, keys in by_node.items():
            if len(keys) > self.shares.connections:
                most = self.shares.connections
                self._found(node, f"it held {len(keys):,} connections at once, where a node may have {most:,}")
            if before is not None:
                self._judge(node, _since(before, [present[key] for key in keys]), seconds, now)

    def facts(self, node: NodeId, count: int, at: float) -> None:
        """A node has appended so many facts at a time of the log's clock."""
        share = self.shares.facts
        if self._bucket(node, "facts").pour(count, at, share):
            self._found(node, f"it appended facts by the thousand, where a node may {_says(share)}")

    def forget(self, nodes: Iterable[NodeId]) -> None:
        """These begin anew: they were cut off, or are back."""
        gone = set(nodes)
        for node in gone:
            self.floods.pop(node, None)
        for key in [key for key in self._buckets if key[0] in gone]:
            del self._buckets[key]

    def _judge(self, node: NodeId, sent: Mapping[str, int], seconds: float, now: float) -> None:
        for what, amount in sent.items():
            share: Share = getattr(self.shares, what)
            if self._bucket(node, what).pour(amount, now, share):
                named = "bytes" if what == "bytes" else "messages"
                sends = f"it sent {amount:,} {named} within {seconds:,.1f} s"
                self._found(node, f"{sends}, where a node may {_says(share)}")

    def _bucket(self, node: NodeId, what: str) -> _Bucket:
        return self._buckets.setdefault((node, what), _Bucket())

    def _found(self, node: NodeId, why: str) -> None:
        self.floods.setdefault(node, why)


def _says(share: Share) -> str:
    return f"say {share.burst:,.0f} at once and {share.rate:,.0f} a second"


def _since(before: Mapping[tuple[str, int], Connection], present: Iterable[Connection]) -> dict[str, int]:
    """What one node's connections have sent since then; one that is new has sent all of it since."""
    sent = {"unasked": 0, "messages": 0, "bytes": 0}
    for each in present:
        last = before.get((each.server, each.id))
        received = each.received - (last.received if last else 0)
        sent["messages"] += received
        sent["unasked"] += max(0, received - (each.sent - (last.sent if last else 0)))
        sent["bytes"] += each.bytes - (last.bytes if last else 0)
    return sent
