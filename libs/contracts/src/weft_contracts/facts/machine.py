"""Facts that only a node itself can say of its machine, by its worker-agent."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Fact
from weft_contracts.facts.values import (
    Backend,
    Count,
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
    """`builtin:<name>` or `path:<path>`."""
    size: Count
    weights: Weights
    metadata: tuple[MetadataFile, ...] = ()


class FileMissing(_Machine, frozen=True):
    """An inspection found no usable file; `reason` is a sentence for people."""

    type: Literal["file_missing"] = "file_missing"
    inspection: InspectionId
    source: str
    reason: str


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
    Reported | FileFound | FileMissing | PressureChanged | InstallFailed, Field(discriminator="type")
]
