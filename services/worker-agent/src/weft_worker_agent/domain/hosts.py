"""An engine host as the agent knows it: what it was started for, what it says, how it ended."""

from dataclasses import dataclass

from weft_contracts.facts.values import EngineName, MetadataFile
from weft_contracts.ids import Incarnation, ReplicaId

from weft_worker_agent.domain.claim_use import ClaimUse

PERMANENT_EXIT = 3
"""The exit status by which a host says that another start would fail the same way."""


@dataclass(frozen=True, slots=True)
class Answering:
    """What an engine that answers is."""

    port: int
    engine: EngineName
    engine_version: str
    metadata: tuple[MetadataFile, ...]
    self_hosted: bool = True
    """Whether this node's server offers them."""


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
    uninstalled: bool = False
    """Its engine could not be installed, and another try may find a better day."""
    room: int = 0
    """Bytes that must be free on the disk of engines before that; 0: it wasn't for want of room."""
    unfetched: bool = False
    """Its model's files could not be fetched, and another try may find a better day."""
    outside: bool = False
    """All that it lacked is something elsewhere, such as a server that is away."""
    last_lines: tuple[str, ...] = ()
    """Of its log, as far as they may be told: see `last_lines`."""


@dataclass(frozen=True, slots=True)
class Host:
    """One start of a replica here. Times are the agent's monotonic seconds."""

    replica: ReplicaId
    epoch: int
    incarnation: Incarnation
    started_at: float
    answering: Answering | None = None
    """None until it is ready."""
    backend: str = ""
    """The name of the environment that it runs in; empty: none that was made for it here."""
    installing: bool = False
    """Its engine is being installed: there is no process yet."""
    fetching: int | None = None
    """Bytes of its model's files, which are on their way: there is no process yet. None: it has them, or needs none."""
    stalled: str = ""
    """Why it counts as stalled; empty: it doesn't."""
    stalled_at: float = float("inf")
    """Since when."""
    end: End | None = None
    retire_at: float | None = None
    """When it was asked to finish what runs and end."""
    retire_within: float = 0.0
    """Seconds that it has for that."""
    term_at: float | None = None
    kill_at: float | None = None
    failing_since: float | None = None
    """It said that it failed, and is still there."""
    use: ClaimUse | None = None
    """Of the machine's memory; None: it claims none, or was not looked at."""
    grew_at: float = float("-inf")
    """When it was last seen to get on with loading."""
    ended_for: str = ""
    """Why it was ended by a signal; empty: it wasn't."""
    given_up_for: str = ""
    """Why it was ended by a signal for good: another start here would take as long."""
    trouble: str = ""
    """Why it can't do its work now, as it says itself; empty: it can."""

    @property
    def prepares(self) -> bool:
        """Whether something is brought here before its process begins."""
        return self.installing or self.fetching is not None

    @property
    def lives(self) -> bool:
        return self.end is None
