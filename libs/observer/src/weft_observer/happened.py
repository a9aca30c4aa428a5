"""One fact as an observer gets it, and which ones it asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from weft_contracts.catalogue import BY_TYPE
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Fact


@dataclass(frozen=True, slots=True)
class Happened:
    """A fact, with the commit that it stands in."""

    fact: Fact
    commit: Recorded
    index: int
    """Its place among the facts of its commit, from 0."""

    @property
    def name(self) -> str:
        """Kind and type, such as `run.failed`."""
        return f"{self.commit.aggregate.kind}.{self.fact.type}"

    @property
    def id(self) -> str:
        """The same whenever this fact is told again, and no other fact's: its place in the log, and when that was."""
        return f"weft-{self.commit.sequence}-{self.index}-{int(self.commit.at * 1000):x}"

    def document(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        commit = self.commit
        return {
            "sequence": commit.sequence,
            "index": self.index,
            "at": datetime.fromtimestamp(commit.at, UTC).isoformat(timespec="milliseconds"),
            "kind": commit.aggregate.kind,
            "key": commit.aggregate.key,
            "actor": commit.actor,
            "event_id": commit.event_id,
            "correlation_id": commit.correlation_id,
            "causation_id": commit.causation_id,
            "fact": self.fact.model_dump(mode="json"),
        }


class BadPattern(ValueError):
    """A pattern that no fact of the catalogue fits. Its text is one sentence."""


def checked(patterns: Sequence[str]) -> tuple[str, ...]:
    """The patterns, each of which fits a fact at least. Raises BadPattern."""
    names = [f"{kind}.{type_}" for kind, type_ in BY_TYPE]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise BadPattern(f"no fact is called {pattern!r}: `weft events --catalogue` lists them, such as run.failed")
    return tuple(patterns)


def fits(name: str, patterns: Sequence[str]) -> bool:
    """Whether a fact of this name was asked for: `run.failed`, `run.*`, `*.failed`, `*`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
