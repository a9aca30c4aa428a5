"""Metadata files: which are verified, and which a node was refused for."""

from dataclasses import dataclass, field, replace

from weft_contracts.commit import Recorded
from weft_contracts.facts.artifact import Refused, Verified
from weft_contracts.facts.values import MetadataFile
from weft_contracts.ids import ArtifactId, NodeId


@dataclass(frozen=True, slots=True)
class Refusal:
    """One time that a node did not serve what it registered."""

    node: NodeId
    file: MetadataFile
    sequence: int
    at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A metadata file of a model's revision."""

    sequence: int = 0
    """Of its last commit; 0: it has none."""
    verified: MetadataFile | None = None
    refusals: tuple[Refusal, ...] = ()
    """The last ones; none once it is verified, but for other contents under its name."""


KEPT = 64
"""Refusals of one artifact that are remembered."""


@dataclass(slots=True)
class Artifacts:
    """Every artifact, folded."""

    known: dict[ArtifactId, Artifact] = field(default_factory=dict[ArtifactId, Artifact])

    def __getitem__(self, id: ArtifactId) -> Artifact:
        return self.known.get(id, _NEW)

    def apply(self, recorded: Recorded) -> None:
        """Fold a commit of an artifact."""
        id = ArtifactId(recorded.aggregate.key)
        artifact = replace(self[id], sequence=recorded.sequence)
        for fact in recorded.facts:
            match fact:
                case Verified(file=file):
                    artifact = replace(artifact, verified=file, refusals=())
                case Refused(node=node, file=file):
                    refusal = Refusal(node, file, recorded.sequence, recorded.at)
                    artifact = replace(artifact, refusals=(*artifact.refusals, refusal)[-KEPT:])
                case _:
                    pass
        self.known[id] = artifact


_NEW = Artifact()
