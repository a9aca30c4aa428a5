"""A log in the hand with one model whose replicas publish small files, each on a node of its own."""

from collections.abc import Callable

from blake3 import blake3
from weft_contracts import subjects
from weft_contracts.commit import Recorded
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, Healthy, Joined, WentOffline
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Ready, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, Member, MetadataFile, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId, TokenId

from weft_testing.hand_log import HandLog

MODEL = ModelId("m-1")
NAME = "owner/Model-1"
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
_RECEIPT = Receipt(
    position=0, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0, refusals={}, candidates=()
)


def published(body: bytes, name: str = "tokenizer.json") -> MetadataFile:
    """What a worker says of a file of this content."""
    return MetadataFile(name=name, size=len(body), blake3=blake3(body).hexdigest())


class PublishingMesh(HandLog):
    """Replica `m-1-<n>` runs on node `n-<n>`."""

    def __init__(self, *listeners: Callable[[Recorded], None], spec: ModelSpec = SPEC) -> None:
        super().__init__(*listeners)
        self.revision = 0
        self.accept(spec)

    def accept(self, spec: ModelSpec) -> None:
        """The model's next revision."""
        self.revision += 1
        self.spec = spec
        fact = SpecAccepted(name=NAME, revision=self.revision, digest=f"d{self.revision}", spec=spec)
        self.given(subjects.model(MODEL), fact)

    def publish(self, number: int, *files: MetadataFile, port: int = 1, self_hosted: bool | None = True) -> None:
        """A replica becomes ready on a new node, whose file server listens at the port."""
        id, place = ReplicaId(f"{MODEL}-{number}"), NodeId(f"n-{number}")
        addresses = Addresses(host="127.0.0.1", http_port=port)
        joined = Joined(name=f"node-{number}", public_key="U", token=TokenId("t-1"), addresses=addresses)
        self.given(subjects.node(place), joined, Approved(by="t-1"), Healthy())
        self.given(subjects.model(MODEL), Scaled(revision=self.revision, add=(id,), why="wanted"))
        members = (Member(node=place, rank=0, devices=()),)
        assigned = Assigned(
            replica=id,
            model=MODEL,
            model_name=NAME,
            revision=self.revision,
            digest=f"d{self.revision}",
            epoch=1,
            members=members,
            spec=self.spec,
        )
        self.given(subjects.node(place), assigned)
        placed = Placed(model=MODEL, revision=self.revision, epoch=1, members=members, receipt=_RECEIPT)
        self.given(subjects.replica(id), placed)
        ready = Ready(
            epoch=1,
            incarnation=Incarnation("i-1"),
            port=1,
            engine="simulated",
            engine_version="1",
            metadata=files,
            self_hosted=self_hosted,
        )
        self.given(subjects.run(place, id), ready)

    def lose(self, number: int) -> None:
        """The replica's node is silent."""
        self.given(subjects.node(NodeId(f"n-{number}")), WentOffline(silent_for=30.0))

    def stop(self, number: int) -> None:
        """The replica's process ends."""
        place = NodeId(f"n-{number}")
        self.given(subjects.run(place, ReplicaId(f"{MODEL}-{number}")), Stopped(epoch=1, why="exited"))
