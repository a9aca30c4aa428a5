"""An engine host as the agent knows it: what it was started for, what it says, how it ended."""

import json
from dataclasses import dataclass
from typing import cast

from weft_contracts.facts.values import EngineName, MetadataFile
from weft_contracts.ids import Incarnation, ReplicaId

PERMANENT_EXIT = 3
"""The exit status by which a host says that another start would fail the same way."""


@dataclass(frozen=True, slots=True)
class Answering:
    """What an engine that answers is."""

    port: int
    engine: EngineName
    engine_version: str
    metadata: tuple[MetadataFile, ...]


@dataclass(frozen=True, slots=True)
class End:
    """A host's end. `exit_code` is negative for a signal, None where there never was a process."""

    exit_code: int | None
    reason: str
    """A sentence for people, the engine's own where it gave one."""
    permanent: bool
    """Another start would fail the same way, here and elsewhere."""
    local: bool = False
    """Another start would fail the same way here: what is wrong is a matter of this node."""
    unfinished: int = 0
    """Requests that still ran when its time to finish was up."""


@dataclass(frozen=True, slots=True)
class Host:
    """One start of a replica here. Times are the agent's monotonic seconds."""

    replica: ReplicaId
    epoch: int
    incarnation: Incarnation
    started_at: float
    answering: Answering | None = None
    """None until it is ready."""
    stalled: bool = False
    """Requests run and its step counter stands still."""
    end: End | None = None
    retire_at: float | None = None
    """When it was asked to finish what runs and end."""
    retire_within: float = 0.0
    """Seconds that it has for that."""
    term_at: float | None = None
    kill_at: float | None = None
    failing_since: float | None = None
    """It said that it failed, and is still there."""
    grew_at: float = float("-inf")
    """When it was last seen to get on with loading."""
    given_up_for: str = ""
    """Why it was ended by a signal for good: another start here would take as long."""
    trouble: str = ""
    """Why it can't do its work now, as it says itself; empty: it can."""

    @property
    def lives(self) -> bool:
        return self.end is None


def sentence_of(exit_code: int | None, said: str, last_words: str) -> str:
    """Why a host ended: what it said, else how its process ended, with its last line of stderr."""
    if said:
        return said
    how = "the engine's process ended"
    if exit_code is not None:
        how += f" by signal {-exit_code}" if exit_code < 0 else f" with status {exit_code}"
    words = _telling(last_words)
    return f"{how}; its last words: {words}" if words else how


def _telling(line: str) -> str:
    """A line of stderr, unless it is one of the host's own log lines and tells of nothing wrong."""
    try:
        parsed: object = json.loads(line)
    except ValueError:
        return line
    if not isinstance(parsed, dict):
        return line
    fields = cast("dict[str, object]", parsed)
    if fields.get("level") in ("debug", "info"):
        return ""
    return str(fields.get("reason") or fields.get("event") or line)
