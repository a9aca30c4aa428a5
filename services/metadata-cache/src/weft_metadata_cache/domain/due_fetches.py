"""What to fetch now, and from whom: files of ready replicas that are not verified yet."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from weft_contracts.commit import Cause, Recorded
from weft_contracts.facts.artifact import Refused, Verified
from weft_contracts.facts.values import MetadataFile
from weft_contracts.ids import ArtifactId, ModelId, NodeId, ReplicaId, artifact_id
from weft_contracts.published_card import elsewhere_of
from weft_fleet import Fleet, NodeView, ReplicaView

from weft_metadata_cache.domain.artifacts import Artifact, Artifacts, fault_of

_SAYABLE = 4096
"""Characters of a registration; a longer one is passed over, for no event could name it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the fetching."""

    most_bytes: int = 1 << 30
    """The largest file."""
    tries: int = 5
    """Times that a node is asked for a file, for each time that its run becomes ready."""
    pause: float = 30.0
    """Seconds from a refusal to the next try at the same node; twice as many after each further one."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """One file to fetch from one node's file server, or, if it has a fault, to refuse unseen."""

    id: ArtifactId
    sequence: int
    """Of the artifact's last commit: what the outcome is guarded by."""
    model: ModelId
    revision: int
    file: MetadataFile
    node: NodeId
    node_name: str
    host: str
    port: int
    """Of the node's file server: its registered address, and never another."""
    replica: ReplicaId
    cause: Cause
    """The run's `ready` that offers the file."""
    self_hosted: bool = True
    """Whether the node offers it."""
    elsewhere: tuple[str, ...] = ()
    """See `CardFile`."""
    fault: str | None = None


@dataclass(slots=True)
class State:
    """Folded in place from every commit of the log, in order."""

    fleet: Fleet = field(default_factory=Fleet)
    artifacts: Artifacts = field(default_factory=Artifacts)
    dirty: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None], compare=False)
    """Replicas to look at: ready ones whose files are not all verified, as far as is known."""

    def on_restored(self) -> None:
        """The memory was filled from a snapshot: every replica is looked at once."""
        self.dirty.update(dict.fromkeys(self.fleet.replicas))

    def apply(self, recorded: Recorded) -> None:
        """Fold one commit."""
        self.fleet.apply(recorded)
        if recorded.aggregate.kind == "artifact":
            self.artifacts.apply(recorded)
            for fact in recorded.facts:
                model = self.fleet.models.get(fact.model) if isinstance(fact, Verified | Refused) else None
                self.dirty.update(dict.fromkeys(model.replicas if model is not None else ()))
        elif recorded.aggregate.kind == "run":
            self.dirty[ReplicaId(recorded.aggregate.key.partition(".")[2])] = None


def due_fetches(state: State, now: float, limits: Limits) -> list[Fetch]:
    """One try for each file that lacks, at the node that was refused for it least and is not in its pause.

    `now`: seconds since the epoch.
    """
    fetches: dict[ArtifactId, tuple[int, ReplicaId, NodeId, Fetch]] = {}
    for id in tuple(state.dirty):
        replica = state.fleet.replicas.get(id)
        if replica is None or not replica.wanted or replica.state != "ready":
            del state.dirty[id]
            continue
        open = False
        for fetch, artifact, since in _offered(state, replica, limits):
            tries = [r for r in artifact.refusals if _answers(r.node, r.file, r.sequence, fetch, since)]
            if artifact.verified == fetch.file or len(tries) >= (1 if fetch.fault else limits.tries):
                continue
            open = True
            pause = limits.pause * 2 ** (len(tries) - 1) if tries else 0.0
            healthy = state.fleet.nodes[fetch.node].presence == "healthy"
            if healthy and (not tries or now - tries[-1].at >= pause):
                candidate = (len(tries), fetch.replica, fetch.node, fetch)
                fetches[fetch.id] = min(fetches.get(fetch.id, candidate), candidate, key=lambda c: c[:3])
        if not open:
            del state.dirty[id]
    return [fetches[id][3] for id in sorted(fetches)]


def _answers(node: NodeId, file: MetadataFile, sequence: int, fetch: Fetch, since: int) -> bool:
    """Whether a refusal is about this offer, and not about an earlier start of the run."""
    return node == fetch.node and file == fetch.file and sequence > since


def _offered(state: State, replica: ReplicaView, limits: Limits) -> Iterator[tuple[Fetch, Artifact, int]]:
    """Each file that a replica's runs offer, with its artifact and the log position of the offer."""
    model = state.fleet.models.get(replica.model)
    _, spec = model.specs.get(replica.revision, ("", None)) if model is not None else ("", None)
    for run in replica.runs.values():
        node = state.fleet.nodes.get(run.node)
        if node is None or node.removed:
            continue
        for file in run.metadata:
            if len(file.name) + len(file.blake3) > _SAYABLE:
                continue
            id = artifact_id(replica.model, replica.revision, file.name)
            artifact = state.artifacts[id]
            self_hosted, elsewhere = run.self_hosted is not False, elsewhere_of(spec, file) if spec is not None else ()
            where = _unreachable(node) if self_hosted else _nowhere(file, elsewhere)
            fetch = Fetch(
                id=id,
                sequence=artifact.sequence,
                model=replica.model,
                revision=replica.revision,
                file=file,
                node=node.id,
                node_name=node.name,
                host=node.addresses.host,
                port=node.addresses.http_port,
                replica=replica.id,
                cause=Cause(run.correlation_id, run.event_id),
                self_hosted=self_hosted,
                elsewhere=elsewhere,
                fault=fault_of(file, limits.most_bytes) or where or _other(artifact, file),
            )
            yield fetch, artifact, run.sequence


def _unreachable(node: NodeView) -> str | None:
    if 0 < node.addresses.http_port < 65536:
        return None
    return f"{node.name} has no file server: its registered port is {node.addresses.http_port}"


def _nowhere(file: MetadataFile, elsewhere: tuple[str, ...]) -> str | None:
    if any(not each.startswith("/") for each in elsewhere):
        return None
    return f"{file.name} is not offered by its node, whose worker offers no such files, and lies at no source"


def _other(artifact: Artifact, file: MetadataFile) -> str | None:
    if artifact.verified in (None, file):
        return None
    return f"{file.name} of this revision is verified with another content: its nodes hold different files"
