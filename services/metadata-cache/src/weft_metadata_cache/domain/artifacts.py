"""Metadata files: what a node may register as one, which are verified, and which a node was refused for."""

import re
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

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}")
_BLAKE3 = re.compile(r"[0-9a-f]{64}")


def fault_of(file: MetadataFile, most: int) -> str | None:
    """What is wrong with a registration, as a sentence; `most` is the largest size in bytes."""
    if _NAME.fullmatch(file.name) is None:
        return (
            f"the name {file.name[:128]!r} is not one of a file: "
            "letters, digits and . _ + - are allowed, up to 128, and no dot at the start"
        )
    if _BLAKE3.fullmatch(file.blake3) is None:
        return f"the checksum of {file.name} is not a blake3: 64 hexadecimal digits are wanted"
    if not 0 <= file.size <= most:
        return f"{file.name} is registered with {file.size} bytes, {most} are allowed"
    return None
