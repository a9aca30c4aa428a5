"""What nodes and models are made of, as answers show it. Sizes are bytes; null is unknown, which is not zero."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.facts.values import EngineName, Vendor


class Addresses(TypedDict):
    """Where a node is reached."""

    host: str
    http_port: int


class Device(TypedDict):
    """One accelerator of a node, or its processor with its memory."""

    index: int
    vendor: Vendor
    name: str
    memory: int
    uuid: str
    number: int | None
    pci: str
    driver: str | None
    compute_capability: str | None
    unified: bool
    budget: int | None
    simulated: bool


class UnsizedDevice(TypedDict):
    """An accelerator whose memory nothing tells."""

    vendor: Vendor
    name: str
    uuid: str
    driver: str | None


class Hardware(TypedDict):
    """What a node has."""

    cpus: float
    memory: int
    disk_free: int | None
    architecture: str
    devices: list[Device]
    unsized: list[UnsizedDevice]
    notes: list[str]


class Backend(TypedDict):
    """An installed engine on a node. `profile`: the digest of its profile, as its worker knows it; empty: the worker is
    older than that."""

    engine: EngineName
    version: str
    vendors: list[Vendor]
    profile: str


class CacheBytes(TypedDict):
    """Bytes of one token's cache, with values of 16 bits."""

    keys: int
    values: int


class CountedLayers(TypedDict):
    """How many layers keep every token, the last ones, or a state."""

    whole: int
    windowed: int
    state: int


class ShapeOfWeights(TypedDict):
    """What a claim is computed from beside: the cache of layers that keep every token (`whole`), of those that keep
    the last `window_tokens`, what a request takes however long it is, values of a token between and inside of layers,
    bytes of the tensors by type, and why the cache can't be computed."""

    whole: CacheBytes
    windowed: CacheBytes
    window_tokens: int
    state_bytes: int
    width: int
    inner: int
    vocabulary: int
    tensor_bytes: dict[str, int]
    computed_in: str
    fault: str
    counts: NotRequired[CountedLayers]
    """Where a worker told them."""


class Weights(TypedDict):
    """What a model file's header says."""

    format: Literal["gguf", "safetensors", "none"]
    architecture: str
    weight_bytes: int
    kv_bytes_per_token: int
    layers: int
    heads: int
    kv_heads: int
    vision_heads: int
    context_tokens: int
    embeds: bool
    fingerprint: str
    shape: NotRequired[ShapeOfWeights]
    """Where a worker told it."""


class BuiltinSource(TypedDict):
    """A model that ships with the project."""

    kind: Literal["builtin"]
    name: str


class PathSource(TypedDict):
    """A file or folder that workers have on their own disks."""

    kind: Literal["path"]
    path: str


class SimulatedSource(TypedDict):
    """No files."""

    kind: Literal["simulated"]


class HfSource(TypedDict):
    """A repository of a hub: at a revision, empty for the main one; `file` names one of several models in it."""

    kind: Literal["hf"]
    repository: str
    revision: str
    file: str
    secret: NotRequired[str]
    """The name of the secret that holds a token; empty: the workers' own settings have one, or none is needed."""


class HttpsSource(TypedDict):
    """A file at an address of the web; `secret` names one that holds a bearer token."""

    kind: Literal["https"]
    url: str
    secret: NotRequired[str]


class S3Source(TypedDict):
    """An object of a bucket, or all objects under a prefix; an empty endpoint is Amazon's. `secret` names one that
    holds the bucket's keys."""

    kind: Literal["s3"]
    bucket: str
    key: str
    region: str
    endpoint: str
    secret: NotRequired[str]


class UploadSource(TypedDict):
    """Files that somebody sends to the mesh, by the first one's name."""

    kind: Literal["upload"]
    name: str


Source = BuiltinSource | PathSource | SimulatedSource | HfSource | HttpsSource | S3Source | UploadSource


class LoraAdapter(TypedDict):
    """A LoRA that is loaded with a model and applied to all of its answers; `bytes`: of its tensors, as found."""

    name: str
    path: str
    scale: float
    bytes: int
    fingerprint: str


class SourceFile(TypedDict):
    """One file of a source that workers fetch; `checksum`: as the source tells it, with its kind: `sha256:…`."""

    name: str
    size: int
    checksum: str


class CountedFiles(TypedDict):
    """How many files workers fetch, and how large they are together."""

    count: int
    bytes: int


class Layout(TypedDict):
    """What is fixed of how a replica lies over devices and nodes; null or empty: nothing. Nodes stand by their ids:
    `gpus` as `node:index`, the index as the device's vendor counts it, from 0."""

    tensor_parallel: int | None
    pipeline_parallel: int | None
    gpus: list[str]
    gpus_per_replica: int | None
    preferred_nodes: list[str]
    distributed: bool | None
    cpu_offload: bool | None


class ModelSpec(TypedDict):
    """What an admin wants of a model, with what the workers found of its files. `policy`: the placement policy that it
    names; empty: the mesh's own. `priority`: what comes first where there isn't room for all. `spread_all`: a replica
    on each node that matches, whatever the two numbers say. `capability`: what its devices must have, one of these.
    `anti_affinity`: no node runs two replicas of models that name the same. `strategy`: the older word, of which
    `spread` holds: one replica of a revision a node."""

    source: Source
    engine: EngineName
    context_tokens: int
    concurrency: int
    engine_args: dict[str, ArgumentValue]
    min_replicas: int
    max_replicas: int
    spread_all: bool
    selector: dict[str, str]
    capability: list[str]
    anti_affinity: str
    policy: str
    strategy: Literal["binpack", "spread"]
    layout: Layout
    priority: int
    weights: Weights
    draft: NotRequired[Weights]
    """Of the draft model that an argument of the engine names, where there is one."""
    adapters: list[LoraAdapter]
    files: CountedFiles


class DeviceClaim(TypedDict):
    """Memory that a replica holds on one device."""

    index: int
    bytes: int


class Member(TypedDict):
    """One node's part of a replica. Rank 0 leads."""

    node: str
    rank: int
    devices: list[DeviceClaim]


class MetadataFile(TypedDict):
    """A small file that belongs to a model."""

    name: str
    size: int
    blake3: str


class FileFound(TypedDict):
    """A model file on a node that an engine can load, or at a source that nodes fetch from; of that the files, the
    commit that it is pinned to, as one line, the short name of its licence, and whether it has terms to be accepted."""

    type: Literal["file_found"]
    v: int
    inspection: str
    source: str
    size: int
    weights: Weights
    metadata: list[MetadataFile]
    files: CountedFiles
    pinned: str | None
    licence: str
    gated: bool


class FileMissing(TypedDict):
    """No usable file on a node, and why."""

    type: Literal["file_missing"]
    v: int
    inspection: str
    source: str
    reason: str
