"""Which NUMA node of this machine an engine is kept to, if any. Pure.

Where there are fewer than two nodes to choose from, nothing is kept to any.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumaNode:
    """Processors of this machine and the memory that lies next to them."""

    index: int
    processors: frozenset[int]
    memory: int
    """Bytes that replicas of this worker may claim of it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """That a living host is kept to a node, and the bytes that its replica claims of the machine's memory."""

    node: int
    bytes: int

    def body(self) -> list[int]:
        """As JSON."""
        return [self.node, self.bytes]

    @staticmethod
    def of(body: object) -> "Bound | None":
        """Read back; None: nothing was said, or nothing that can be read."""
        match body:
            case [int(node), int(size)]:
                return Bound(node, size)
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Need:
    """What one replica needs of a node."""

    bytes: int
    """Of the machine's memory."""
    threads: int
    beside: frozenset[int | None] = frozenset()
    """The nodes of the accelerators that it claims; None among them: of one it isn't known. Empty: it claims none."""


def usable(
    nodes: Iterable[NumaNode],
    processors: Collection[int],
    memories: Collection[int] | None = None,
    limit: int | None = None,
    parts: int = 1,
) -> tuple[NumaNode, ...]:
    """The nodes that this worker may choose from, in their order; none where that leaves no choice.

    Args:
        processors: those that it may run on.
        memories: the nodes whose memory it may take; None: all.
        limit: bytes that it may take in all; None: as much as there is.
        parts: workers that share the machine: each counts on its part of every node's memory.
    """
    left: list[NumaNode] = []
    for node in sorted(nodes, key=lambda node: node.index):
        if mine := node.processors & frozenset(processors):
            memory = node.memory if memories is None or node.index in memories else 0
            left.append(NumaNode(node.index, mine, (memory if limit is None else min(memory, limit)) // parts))
    return tuple(left) if len(left) > 1 else ()


def chosen(nodes: Sequence[NumaNode], bound: Sequence[Bound], need: Need, first: int = 0) -> NumaNode | None:
    """The node for a replica; None: it is kept to none, because it fits into none or its devices say no single one.

    A replica on accelerators goes to the node that they are all at, however much is claimed there: its devices are
    what it computes with. One on the processor alone goes to the node with the least claimed bytes, then the fewest
    replicas, of those where its claim and its threads fit. `first`: where to begin among equals, so that several
    workers of a machine don't all begin at the same node.
    """
    wide = [node for node in nodes if need.threads <= len(node.processors)]
    if need.beside:
        return next((node for node in wide if need.beside == frozenset[int | None]({node.index})), None)
    there = {node.index: [each.bytes for each in bound if each.node == node.index] for node in nodes}
    roomy = [node for node in wide if sum(there[node.index]) + need.bytes <= node.memory]
    order = {node.index: (place - first) % len(nodes) for place, node in enumerate(nodes)}
    return min(
        roomy,
        key=lambda node: (sum(there[node.index]), len(there[node.index]), order[node.index]),
        default=None,
    )
