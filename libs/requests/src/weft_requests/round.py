"""Decisions that are appended side by side."""

from weft_contracts.commit import Decision
from weft_contracts.subjects import Aggregate


class Round:
    """Decisions of one round, none of which writes or guards what another one writes or guards.

    Who asks for what another was just given is answered in the next round, when what became of that is folded.
    """

    def __init__(self, most: int | None = None) -> None:
        """`most`: so many decisions, and no more; None: any number."""
        self.decisions: list[Decision] = []
        self._most = most
        self._touched: set[Aggregate] = set()

    def add(self, decision: Decision) -> bool:
        """Whether it could be taken into this round. What could not comes again with the next."""
        if len(self.decisions) == self._most:
            return False
        touched = {commit.aggregate for commit in decision.commits}
        touched.update(commit.guard.aggregate for commit in decision.commits if commit.guard is not None)
        if not self._touched.isdisjoint(touched):
            return False
        self._touched |= touched
        self.decisions.append(decision)
        return True
