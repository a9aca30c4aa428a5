"""The last that each node said of what it installs, loads and holds, for as long as it counts. No clock of its own."""

from weft_contracts.ids import NodeId
from weft_contracts.signals import PROGRESS_AGAIN_S, NodeProgress

COUNTS_S = 3 * PROGRESS_AGAIN_S
"""Seconds for which what was said counts. A node that has something to say says it three times as often."""


class ProgressBoard:
    """One entry a node that has something to say. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._last: dict[NodeId, tuple[float, NodeProgress]] = {}
        """The one that was heard longest ago stands first."""
        self.version = 0
        """Another one where another thing is to be shown."""

    def heard(self, node: NodeId, progress: NodeProgress, now: float) -> None:
        """What a node said; nothing at all takes away what it said before."""
        _, before = self._last.pop(node, (0.0, None))
        empty = not (progress.moves or progress.memory)
        if not empty:
            self._last[node] = now, progress
        if before != progress and not (empty and before is None):
            self.version += 1

    def forget_old(self, now: float) -> None:
        """Take away what was said too long ago to count."""
        while self._last and next(iter(self._last.values()))[0] < now - COUNTS_S:
            del self._last[next(iter(self._last))]
            self.version += 1

    def of(self, node: NodeId) -> NodeProgress | None:
        """What a node said last; None: nothing that counts."""
        found = self._last.get(node)
        return found[1] if found is not None else None

    def nodes(self) -> list[NodeId]:
        """Those that said something that counts."""
        return list(self._last)
