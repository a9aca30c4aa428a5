"""What the scheduler knows: the fleet, who waits for a place, and each waiting revision's board."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.ids import ReplicaId
from weft_placement import Board, ClaimUnknown, Outlook, Policy
from weft_placement.decide import demand_for
from weft_placement.fleet import Fleet

from weft_scheduler.domain.waiting import Revision, Waiting

BOARDS_KEPT = 128
"""Of revisions; one more makes the one that was longest not looked at be made anew when it is needed."""


@dataclass(slots=True)
class State:
    """Folded from the log. The boards are a memory of answers: the same as asking every node again."""

    policy: Policy = field(compare=False)
    fleet: Fleet = field(default_factory=Fleet)
    waiting: Waiting = field(default_factory=Waiting)
    _boards: dict[Revision, Board | str] = field(default_factory=dict[Revision, Board | str], compare=False)

    def fold(self, commits: Iterable[Recorded]) -> None:
        """Take the next commits of the log, every one of them, in order."""
        for recorded in commits:
            self.fleet.apply(recorded)
            self.waiting.follow(self.fleet, recorded)

    def taken_up(self) -> None:
        """The memory was filled from a snapshot: all that waits is looked at again."""
        self.waiting.look_anew()

    def board(self, revision: Revision, sample: ReplicaId, outlook: Outlook) -> Board | str:
        """The revision's board in step with the outlook, or why its claim can't be computed.

        `sample` is any replica of the revision.
        """
        board = self._boards.pop(revision, None)
        if board is None:
            board = self._made(sample)
        self._boards[revision] = board
        if len(self._boards) > BOARDS_KEPT:
            del self._boards[next(iter(self._boards))]
        if isinstance(board, Board):
            board.sync(outlook)
        return board

    def _made(self, sample: ReplicaId) -> Board | str:
        try:
            return Board(demand_for(self.fleet, self.fleet.replicas[sample], self.policy), self.policy)
        except ClaimUnknown as error:
            return str(error)
