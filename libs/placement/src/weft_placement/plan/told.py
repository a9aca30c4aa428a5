"""What a plan's file tells. Sizes are bytes; accelerators are counted as their vendors do, from 0."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft_contracts.facts.values import EngineName, Vendor, Weights

from weft_placement.policy import BUILTIN_POLICIES, Policy


@dataclass(frozen=True, slots=True)
class ToldGpu:
    """An accelerator of a node."""

    index: int
    vendor: Vendor
    name: str
    vram: int
    pressure: int
    """What others than Weft use of it."""
    capability: str | None = None
    """Its compute capability or architecture; None: not told."""


@dataclass(frozen=True, slots=True)
class ToldNode:
    """A machine."""

    id: str
    labels: Mapping[str, str]
    ram: int
    """0: it isn't counted, and nothing is placed on the processor."""
    reserved: int
    """Of the machine's memory, for others; at least what Weft reserves itself."""
    disk: int | None
    unified: bool
    """Its accelerators share the machine's memory."""
    gpus: tuple[ToldGpu, ...]


@dataclass(frozen=True, slots=True)
class ToldClaim:
    """What a replica that runs holds."""

    ram: int
    gpus: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class ToldRun:
    """A replica that runs."""

    model: str
    node: str
    claim: ToldClaim
    idle_s: float


@dataclass(frozen=True, slots=True)
class ToldNeed:
    """What a replica needs, said outright: on accelerators in all, and of the machine's memory."""

    vram: int
    ram: int


@dataclass(frozen=True, slots=True)
class ToldModel:
    """A model whose replicas are to be placed."""

    name: str
    where: str
    """Its path in the file."""
    engine: EngineName
    replicas: int | None
    """Those to place; None: one on each node that matches."""
    policy: str
    """Empty: the default."""
    selector: Mapping[str, str]
    capability: tuple[str, ...]
    anti_affinity: str
    weights: Weights
    vocabulary: int
    context: int
    concurrency: int
    need: ToldNeed | None
    gpus: Mapping[str, frozenset[int]] | None
    """By node, those that were chosen by hand; None: any."""
    devices: int | None
    """How many of a node it must span, or how many of the chosen ones."""
    stages: int | None
    wished: int | None
    """So many accelerators at most."""
    by_hand: bool
    cpu_offload: bool | None
    distributed: bool | None
    preferred: tuple[str, ...]
    utilization: float | None
    priority: int


@dataclass(frozen=True, slots=True)
class ToldFleet:
    """All of it. A plan on a mesh tells neither nodes nor what runs: those are the mesh's."""

    nodes: tuple[ToldNode, ...]
    running: tuple[ToldRun, ...]
    ready: Mapping[str, tuple[str, ...]]
    """By model, the nodes that have its files."""
    models: tuple[ToldModel, ...]
    policies: Mapping[str, Policy] = field(default_factory=lambda: dict(BUILTIN_POLICIES))
    """By name: those that models may name."""
