"""Where in the log a table stands."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """A place in one stream. Two positions of different identity have nothing to do with one another."""

    identity: str
    """What tells the stream from another of its name."""
    sequence: int
    """Of the last folded commit; 0: nothing is folded."""
    event_id: str = ""
    """Of that commit: a stream that was put back and went on differs here."""


START = Position("", 0)
"""Before anything was folded."""
