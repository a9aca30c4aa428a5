"""What can go wrong at the log, by name."""

from weft_contracts.commit import Guard


class Conflict(Exception):
    """A guard lost: somebody else moved an aggregate first. Nothing was appended.

    A refused batch does not name the loser, so `guards` are all of them: reread them all.
    """

    def __init__(self, guards: tuple[Guard, ...]) -> None:
        super().__init__(", ".join(f"{g.aggregate} moved past {g.sequence}" for g in guards))
        self.guards = guards


class LogUnavailable(Exception):
    """No answer within the bound. Whether the commit was taken is not known: append it again with its id."""


class LogFull(Exception):
    """The log refuses new facts: its disk or its limit is full. Nothing was appended."""


class ForeignDuplicate(Exception):
    """Another commit bears this event id. Ids are random, so somebody guessed or copied one."""
