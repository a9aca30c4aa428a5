"""What a worker's run registers, for tests."""

from blake3 import blake3
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, Healthy, Joined
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Ready
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, Member, MetadataFile, ModelSpec, Receipt
from weft_contracts.ids import ArtifactId, CorrelationId, EventId, Incarnation, ModelId, NodeId, ReplicaId, TokenId
from weft_metadata_cache.domain.due_fetches import Fetch

MODEL = ModelId("m-1")
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
CAUSE = Cause(CorrelationId("c-1"))


def file(body: bytes, name: str = "tokenizer.json") -> MetadataFile:
    return MetadataFile(name=name, size=len(body), blake3=blake3(body).hexdigest())


def fetch_of(file: MetadataFile, port: int, host: str = "127.0.0.1", *, elsewhere: tuple[str, ...] = ()) -> Fetch:
    """A file to fetch from replica m-1-1."""
    return Fetch(
        id=ArtifactId("a-1"),
        sequence=0,
        model=MODEL,
        revision=1,
        file=file,
        node=NodeId("n-1"),
        node_name="node-1",
        host=host,
        port=port,
        replica=ReplicaId("m-1-1"),
        cause=Cause(CorrelationId("c"), EventId("e")),
        elsewhere=elsewhere,
    )


def _commit(aggregate: subjects.Aggregate, *facts: object) -> Commit:
    return Commit(aggregate, facts, None, CAUSE)  # pyright: ignore[reportArgumentType]


def model(replicas: int, spec: ModelSpec = SPEC) -> Commit:
    """Model m-1 with so many replicas."""
    accepted = SpecAccepted(name="m", revision=1, digest="d", spec=spec)
    added = tuple(ReplicaId(f"{MODEL}-{number}") for number in range(1, replicas + 1))
    return _commit(subjects.model(MODEL), accepted, Scaled(revision=1, add=added, why="test"))


def node(number: int, port: int) -> Commit:
    """A healthy node n-<number> with a file server."""
    joined = Joined(
        name=f"node {number}",
        public_key="U",
        token=TokenId("t-1"),
        addresses=Addresses(host="127.0.0.1", http_port=port),
    )
    return _commit(subjects.node(NodeId(f"n-{number}")), joined, Approved(by="t-1"), Healthy())


def placed(number: int) -> tuple[Commit, Commit]:
    """Replica <number> goes to node <number>."""
    id, place = ReplicaId(f"{MODEL}-{number}"), NodeId(f"n-{number}")
    members = (Member(node=place, rank=0, devices=()),)
    receipt = Receipt(
        position=0, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0, refusals={}, candidates=()
    )
    return (
        _commit(
            subjects.node(place),
            Assigned(
                replica=id,
                model=MODEL,
                model_name="m",
                revision=1,
                digest="d",
                epoch=1,
                members=members,
                spec=SPEC,
            ),
        ),
        _commit(subjects.replica(id), Placed(model=MODEL, revision=1, epoch=1, members=members, receipt=receipt)),
    )


def ready(number: int, *files: MetadataFile, self_hosted: bool | None = None) -> Commit:
    """Replica <number> is ready on node <number> and offers files."""
    id, place = ReplicaId(f"{MODEL}-{number}"), NodeId(f"n-{number}")
    fact = Ready(
        epoch=1,
        incarnation=Incarnation("i-1"),
        port=1,
        engine="simulated",
        engine_version="1",
        metadata=files,
        self_hosted=self_hosted,
    )
    return _commit(subjects.run(place, id), fact)


def mesh(ports: list[int], *files: MetadataFile) -> list[Commit]:
    """A model with one ready replica on each of so many nodes; all offer the same files."""
    commits = [model(len(ports))]
    for number, port in enumerate(ports, 1):
        commits += [node(number, port), *placed(number), ready(number, *files)]
    return commits
