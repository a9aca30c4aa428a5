"""Values that several facts share. Sizes are bytes, times seconds, unless a name says otherwise."""

from typing import Annotated, Literal

from pydantic import Field

from weft_contracts.capability import MOST_CAPABILITIES, Capability
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.facts.fact import Count, Value
from weft_contracts.facts.layers import MOST_LAYER_RUNS, LayerRun
from weft_contracts.facts.layout import ANY_LAYOUT, Layout
from weft_contracts.facts.lora import MOST_LORA_ADAPTERS, LoraAdapter
from weft_contracts.facts.shape import ModelShape
from weft_contracts.facts.source import FetchedSource, Source, SourceFiles
from weft_contracts.ids import NodeId

Vendor = Literal["nvidia", "amd", "intel", "apple", "ascend", "cpu"]
ENGINE_NAME = r"[a-z0-9][a-z0-9._-]{0,39}"
EngineName = Annotated[str, Field(pattern=f"^{ENGINE_NAME}$")]
"""What an engine is called; `weft_contracts.engines` says what there is to know of it."""
Scope = Literal["admin", "inference", "read"]
"""What an API key lets its bearer do: everything; ask models; look at the mesh without changing it."""
NodeKind = Literal["worker", "agent"]
"""A worker runs models; an agent does not, and is placed nothing on."""
Port = Annotated[int, Field(ge=0, le=65535)]


class Device(Value, frozen=True):
    """One accelerator of a node, or its processor with its memory."""

    index: Annotated[int, Field(ge=0, le=65535)]
    vendor: Vendor
    name: str
    memory: Count
    """All of it, in bytes."""
    uuid: str = ""
    number: Count | None = None
    """How its vendor's own tools count it, from 0."""
    pci: str = ""
    """Where it is on the machine's PCI bus, `0000:4d:00.0`, as other runtimes know it too; empty: not known."""
    driver: str | None = None
    compute_capability: str | None = None
    """As the vendor says it: `9.0`, `gfx942`."""
    unified: bool = False
    """Its memory is the machine's: what is claimed on it is claimed of the processor's too, and the reverse."""
    budget: Count | None = None
    """Bytes that replicas may claim at most; None: no bound but the memory."""
    simulated: bool = False
    """It is made up for development: only an engine that runs on such devices takes it."""


class UnsizedDevice(Value, frozen=True):
    """An accelerator whose memory nothing tells: it is shown, and no replica is placed on it."""

    vendor: Vendor
    name: str
    uuid: str = ""
    driver: str | None = None


class Hardware(Value, frozen=True):
    """What a node has. `None` is unknown, which is not zero."""

    cpus: Annotated[float, Field(ge=0, le=1e9)]
    """Processors that this worker may use; a share of the machine when several workers split it."""
    memory: Count
    disk_free: Count | None = None
    architecture: str = ""
    devices: tuple[Device, ...] = ()
    unsized: tuple[UnsizedDevice, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be found out, or is not as the worker's settings want it: sentences for people."""


class Backend(Value, frozen=True):
    """An installed engine on a node."""

    engine: EngineName
    version: str
    vendors: tuple[Vendor, ...]
    profile: Annotated[str, Field(max_length=64)] = ""
    """The digest of the engine's profile, as the worker knows it; empty: the worker is older than that."""


class InstalledBackend(Value, frozen=True):
    """An environment that a node made for an engine. Several of one engine may lie side by side."""

    name: Annotated[str, Field(max_length=160)]
    """Of its folder: unique on the node, and another where its content is."""
    engine: EngineName
    vendor: Vendor
    version: Annotated[str, Field(max_length=64)]
    recipe: Annotated[str, Field(max_length=64)] = ""
    """The digest of the variant that it was made by; empty: it was made before anybody noted that."""
    bytes: Count | None = None
    """On the disk; None: not known."""
    unused_since: float | None = None
    """Since when no engine runs in it, in seconds since the epoch; None: one does."""


class Installs(Value, frozen=True):
    """What a node can install for engines."""

    allowed: bool = True
    """Whether its operator lets it."""
    disk_free: Count | None = None
    """Of the disk that takes it; None: not known."""
    own_index: bool = False
    """Whether its operator named an index, or a folder for one: builds that the public index has not may be there."""
    room: Annotated[dict[str, Count], Field(max_length=64)] = {}
    """Bytes that must be free before another try, by the recipe's digest, of what the disk had too little for."""
    builds: tuple[str, ...] | None = None
    """What it has to build engines with (`BuildTool`); None: its worker builds none."""

    def lacks_room(self, recipe: str, estimate: int = 0) -> bool:
        """Whether the disk has too little for what a recipe makes: less than `estimate` bytes, or than a try showed."""
        return self.disk_free is not None and self.disk_free < max(estimate, self.room.get(recipe, 0))


class Addresses(Value, frozen=True):
    """Where a node's data plane is reached. Engines' ports come with their runs."""

    host: str
    http_port: int
    """Its file server's port."""


class VramBudget(Value, frozen=True):
    """How much of each device replicas may claim together: a share of its memory or so many bytes; neither: all."""

    share: Annotated[float, Field(gt=0, le=1)] | None = None
    bytes: Annotated[int, Field(gt=0)] | None = None

    def of(self, memory: int) -> int:
        """Bytes of a device with so much memory."""
        if self.bytes is not None:
            return min(self.bytes, memory)
        return memory if self.share is None else int(memory * self.share)


class Caps(Value, frozen=True):
    """What a node takes at most. None: nothing is said about it."""

    replicas_per_model: Annotated[int, Field(ge=0)] | None = None
    """0: as many as there is room for."""
    vram_budget: VramBudget | None = None


class MetadataFile(Value, frozen=True):
    """A small file that belongs to a model: tokenizer, configuration, template."""

    name: str
    size: Count
    blake3: str
    """64 hexadecimal digits."""


class Weights(Value, frozen=True):
    """What a model file's header says: all that a claim is computed from."""

    format: Literal["gguf", "safetensors", "none"]
    architecture: str = ""
    weight_bytes: Count = 0
    kv_bytes_per_token: Count = 0
    layers: Count = 0
    heads: Count = 0
    kv_heads: Count = 0
    vision_heads: Count = 0
    context_tokens: Count = 0
    """The longest context that the model was made for; 0: unknown."""
    embeds: bool = False
    """It was made to make embeddings and not to write; `engine_args.embeddings` of a spec says otherwise."""
    fingerprint: str = ""
    """Of the files' content, so that another training of the same shape is another model; empty: not known."""
    layer_runs: Annotated[
        tuple[LayerRun, ...], Field(max_length=MOST_LAYER_RUNS, exclude_if=lambda runs: not runs)
    ] = ()
    """Its layers from the first on; empty: nothing is known of single ones. A spec has them, and the two sizes below,
    only where its claim is computed from them."""
    output_bytes: Annotated[Count, Field(exclude_if=lambda size: not size)] = 0
    """Of weight_bytes, what the output takes where it is computed: of a model whose output is its embeddings these."""
    input_bytes: Annotated[Count, Field(exclude_if=lambda size: not size)] = 0
    """Of weight_bytes, what is of no layer and not the output's alone: embeddings."""
    shape: Annotated[ModelShape | None, Field(exclude_if=lambda shape: shape is None)] = None
    """What its cache and its activations are made of; None: an older worker read the header."""

    def same_as(self, other: "Weights") -> bool:
        """Whether both describe the same files. A fingerprint, the sizes of layers, the shape and how many layers
        of each sort it has count where both have them."""
        update: dict[str, object] = {}
        if not (self.fingerprint and other.fingerprint):
            update["fingerprint"] = other.fingerprint
        if not (self.layer_runs and other.layer_runs):
            update |= _layers_of(other)
        if self.shape is None or other.shape is None:
            update["shape"] = other.shape
        elif self.shape.counts is None or other.shape.counts is None:
            update["shape"] = self.shape.model_copy(update={"counts": other.shape.counts})
        return (self.model_copy(update=update) if update else self) == other

    @property
    def without_layers(self) -> "Weights":
        """The same with nothing said of single layers."""
        return self.model_copy(update=_layers_of(Weights(format="none"))) if self.layer_runs else self


def _layers_of(weights: Weights) -> dict[str, object]:
    return {name: getattr(weights, name) for name in ("layer_runs", "output_bytes", "input_bytes")}


MOST_PRIORITY = 1000
"""Of a model, and as far below 0."""


class ModelSpec(Value, frozen=True):
    """What an admin wants of a model. A change of it is a new revision."""

    source: Source
    engine: EngineName
    context_tokens: Annotated[int, Field(ge=1)] = 1024
    """Prompt and answer together, for one request."""
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 8
    """Requests that one replica runs at once."""
    engine_args: dict[str, ArgumentValue] = {}
    min_replicas: Annotated[int, Field(ge=0)] = 1
    max_replicas: Annotated[int, Field(ge=0)] = 1
    """0: no upper bound."""
    spread_all: Annotated[bool, Field(exclude_if=lambda spread: not spread)] = False
    """A replica on each node that matches, one a node, however many these are; the two numbers above then say nothing
    and are 1. Who doesn't know this keeps one."""
    selector: dict[str, str] = {}
    """Labels that a node must bear; `!key` with an empty value: must not bear."""
    capability: Annotated[
        tuple[Capability, ...], Field(max_length=MOST_CAPABILITIES, exclude_if=lambda wanted: not wanted)
    ] = ()
    """What its devices must have, one of these: `8.9` or higher, `gfx942`; empty: nothing is asked. Who doesn't know
    this asks nothing."""
    anti_affinity: Annotated[str, Field(max_length=63, exclude_if=lambda name: not name)] = ""
    """No node runs two replicas of models that name the same; empty: they may. Who doesn't know this lets them."""
    policy: Annotated[str, Field(exclude_if=lambda name: not name)] = ""
    """By which placement policy its replicas are placed, by name; empty: by the mesh's own. Who doesn't know this goes
    by the mesh's own, too."""
    strategy: Literal["binpack", "spread"] = "binpack"
    """`spread`: one replica of a revision on a node, and no more. From before policies had names, and so `binpack`
    says nothing."""
    layout: Annotated[Layout, Field(exclude_if=lambda layout: layout == ANY_LAYOUT)] = ANY_LAYOUT
    """What is fixed of how a replica lies over devices and nodes."""
    priority: Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY, exclude_if=lambda priority: not priority)] = 0
    """Of replicas without a place those of a higher priority come first, and no replica is ended for one of a lower.
    Who doesn't know this takes all for equal."""
    weights: Weights = Weights(format="none")
    """Filled in by the reconciler from what the workers' inspections found; of an upload its sender read them."""
    draft: Annotated[Weights | None, Field(exclude_if=lambda draft: draft is None)] = None
    """Of the draft model that an argument of the engine names (`draft_argument` of its profile): what the workers found
    of it, filled in by the reconciler. None: it names none, or nobody has looked yet."""
    adapters: Annotated[
        tuple[LoraAdapter, ...], Field(max_length=MOST_LORA_ADAPTERS, exclude_if=lambda adapters: not adapters)
    ] = ()
    files: Annotated[SourceFiles, Field(exclude_if=lambda files: not files)] = ()
    """Of a source that workers fetch: which files make the model, the one that the engine is told first. Filled in by
    the reconciler from what an inspection found; of an upload it is whoever sends them that tells."""

    @property
    def places(self) -> tuple[dict[str, str], tuple[str, ...], str, Layout]:
        """What says where its replicas may run: another one moves what runs."""
        return self.selector, self.capability, self.anti_affinity, self.layout

    @property
    def needs(self) -> int:
        """The lowest version of a fact that can say this spec: 2 where an argument is a list or an object, 3 with
        LoRA adapters: who doesn't know them would answer without; 4 with a source that is fetched, or sent; 5 where
        something is fixed of its layout: who doesn't know that would place it anywhere."""
        if self.layout != ANY_LAYOUT:
            return 5
        if isinstance(self.source, FetchedSource):
            return 4
        if self.adapters:
            return 3
        return 2 if any(isinstance(value, list | dict) for value in self.engine_args.values()) else 1


class DeviceClaim(Value, frozen=True):
    """Memory that a replica holds on one device."""

    index: int
    bytes: int


class Member(Value, frozen=True):
    """One node's part of a replica. Rank 0 leads."""

    node: NodeId
    rank: int
    devices: tuple[DeviceClaim, ...]


class Candidate(Value, frozen=True):
    """A place that a decision weighed."""

    node: NodeId
    devices: tuple[int, ...]
    score: float
    scores: dict[str, float]


class Receipt(Value, frozen=True):
    """The record of one placement: with the log up to `position`, enough to compute it again."""

    position: int
    """The log's last sequence that the decision had folded."""
    policy: str
    policy_digest: str
    seed: int
    trigger: str
    """The event id that asked for the decision."""
    decided_at: float
    """Seconds since the epoch, as given to the decision."""
    refusals: dict[str, int]
    """How many nodes each reason turned away."""
    candidates: tuple[Candidate, ...]
    """The best eight."""
    rungs: tuple[str, ...] = ()
    """Why each rung of the ladder was passed over, up to the one taken."""
