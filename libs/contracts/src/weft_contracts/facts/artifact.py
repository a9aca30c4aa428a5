"""Facts about metadata files, by the metadata-cache."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Fact
from weft_contracts.facts.values import MetadataFile
from weft_contracts.ids import ModelId, NodeId
from weft_contracts.subjects import Kind


class _Artifact(Fact, frozen=True):
    kind: ClassVar[Kind] = "artifact"


class Verified(_Artifact, frozen=True):
    """The file's bytes are in the object store `blobs` under their blake3."""

    type: Literal["verified"] = "verified"
    model: ModelId
    revision: int
    file: MetadataFile


class Refused(_Artifact, frozen=True):
    """What a node served is not what it registered."""

    type: Literal["refused"] = "refused"
    model: ModelId
    revision: int
    file: MetadataFile
    node: NodeId
    reason: str


ArtifactFact = Annotated[Verified | Refused, Field(discriminator="type")]
