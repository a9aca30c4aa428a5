"""Facts that only a node itself can say of its machine, by its worker-agent."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Count, Fact
from weft_contracts.facts.source import FilesDigest, RemoteSource, SourceFiles
from weft_contracts.facts.values import (
    Backend,
    EngineName,
    Hardware,
    InstalledBackend,
    Installs,
    MetadataFile,
    Vendor,
    Weights,
)
from weft_contracts.ids import InspectionId
from weft_contracts.subjects import Kind

MOST_LICENCE = 64
"""Characters of a licence's short name."""
FactName = Annotated[str, Field(max_length=80)]
"""`<kind>.<type>`."""
MOST_BACKENDS = 64
"""Engines that one node reports at most: each becomes a label of the node, too."""


class _Machine(Fact, frozen=True):
    kind: ClassVar[Kind] = "machine"


class Reported(_Machine, frozen=True):
    """What the agent found at its start. Appended when it differs from the last report."""

    type: Literal["reported"] = "reported"
    hardware: Hardware
    backends: Annotated[tuple[Backend, ...], Field(max_length=MOST_BACKENDS)]
    builtins: tuple[str, ...]
    """Names of the models that ship with its installation."""
    agent_version: str
    environments: Annotated[tuple[InstalledBackend, ...], Field(max_length=MOST_BACKENDS)] = ()
    """What was installed for engines, each version of it."""
    installs: Installs | None = None
    """What it can install for engines; None: its worker is older than that."""
    reads: Annotated[dict[FactName, Annotated[int, Field(ge=1, le=65535)]], Field(max_length=256)] = {}
    """The facts (`<kind>.<type>`) that it reads in versions above 1, each with the newest one (`formats.READS`)."""


class FileFound(_Machine, frozen=True):
    """An inspection found what an engine can load: a file, or weights of no format where the engine needs none."""

    type: Literal["file_found"] = "file_found"
    inspection: InspectionId
    source: str
    """See `source_keys.source_key`."""
    size: Count
    weights: Weights
    metadata: tuple[MetadataFile, ...] = ()
    files: Annotated[SourceFiles, Field(exclude_if=lambda files: not files)] = ()
    """Of a source that workers fetch: see `ModelSpec.files`."""
    pinned: Annotated[RemoteSource | None, Field(discriminator="kind", exclude_if=lambda source: source is None)] = None
    """That source with the commit that its revision was at."""
    licence: Annotated[str, Field(max_length=MOST_LICENCE, exclude_if=lambda text: not text)] = ""
    """Its short name, where the source tells one."""
    gated: Annotated[bool, Field(exclude_if=lambda gated: not gated)] = False
    """Whether the source has terms that must be accepted there, as this node's account did."""


class FileMissing(_Machine, frozen=True):
    """An inspection found no usable file; `reason` is a sentence for people."""

    type: Literal["file_missing"] = "file_missing"
    inspection: InspectionId
    source: str
    reason: str


class FilesCame(_Machine, frozen=True):
    """A model's files, fetched from elsewhere, lie verified on the node's disk."""

    type: Literal["files_came"] = "files_came"
    files: FilesDigest
    bytes: Count


class FilesGone(_Machine, frozen=True):
    """They no longer do."""

    type: Literal["files_gone"] = "files_gone"
    files: FilesDigest


class FilesFailed(_Machine, frozen=True):
    """Files that the node is to have could not be fetched. Told once for each reason; it tries on by itself."""

    type: Literal["files_failed"] = "files_failed"
    files: FilesDigest
    reason: Annotated[str, Field(max_length=2000)]
    """A sentence for people."""


class PressureChanged(_Machine, frozen=True):
    """What others than our replicas use of a device's memory changed by more than 2 %."""

    type: Literal["pressure_changed"] = "pressure_changed"
    device: Count
    bytes: Count


class InstallFailed(_Machine, frozen=True):
    """What the node is to have ahead of need could not be installed. Told once for each reason; it tries on by itself,
    unless it says that this is final."""

    type: Literal["install_failed"] = "install_failed"
    engine: EngineName
    vendor: Vendor
    recipe: Annotated[str, Field(max_length=64)]
    """The digest of the variant."""
    reason: Annotated[str, Field(max_length=2000)]
    final: bool = False
    """Until the node is asked anew, or its agent starts anew."""


MachineFact = Annotated[
    Reported | FileFound | FileMissing | FilesCame | FilesGone | FilesFailed | PressureChanged | InstallFailed,
    Field(discriminator="type"),
]
