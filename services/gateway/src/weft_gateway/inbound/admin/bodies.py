"""Bodies of admin requests (the nodes' own are in `domain/node_bodies.py`).

Unknown fields are refused: a typo must not pass as a default.
"""

from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, SecretStr, ValidationInfo, field_validator
from weft_contracts.aliases import MOST_TARGETS, MOST_WEIGHT, AliasRule
from weft_contracts.budget import parse_budget
from weft_contracts.capability import MOST_CAPABILITIES, Capability
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.facts.layout import Layout
from weft_contracts.facts.lora import MOST_LORA_ADAPTERS, LoraName, LoraScale
from weft_contracts.facts.source import (
    MOST_FILES,
    BuiltinSource,
    HfSource,
    HttpsSource,
    PathSource,
    S3Source,
    SimulatedSource,
    SourceFile,
    UploadSource,
)
from weft_contracts.facts.values import MOST_PRIORITY, EngineName, ModelSpec, Scope, VramBudget, Weights
from weft_contracts.names import ANTI_AFFINITY, LONGEST_MODEL_NAME, NAME
from weft_contracts.policies import NAME as POLICY_NAME
from weft_contracts.secrets import MOST_BYTES
from weft_contracts.source_faults import (
    fault_of_bucket,
    fault_of_endpoint,
    fault_of_file,
    fault_of_file_url,
    fault_of_key,
    fault_of_region,
    fault_of_repository,
    fault_of_revision,
    fault_of_secret,
)

from weft_gateway.domain.node_bodies import DRAIN_S, MAX_DRAIN_S, MAX_REASON

T = TypeVar("T")
ModelName = Annotated[str, Field(pattern=f"^{NAME}$", max_length=LONGEST_MODEL_NAME)]
LabelName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$", max_length=63)]
LabelValue = Annotated[str, Field(max_length=63)]


def _absolute(path: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise ValueError("must be an absolute path on the workers' disks")
    return path


class Builtin(BuiltinSource, frozen=True, extra="forbid"):
    """A model that ships with the project."""

    name: Annotated[str, Field(min_length=1, max_length=128)]


class OnDisk(PathSource, frozen=True, extra="forbid"):
    """A file or folder that workers have on their own disks."""

    path: Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_absolute)]


class Simulated(SimulatedSource, frozen=True, extra="forbid"):
    """No files."""


def _without(fault: Callable[[str], str | None]) -> AfterValidator:
    """Raises ValueError for a text that has this fault."""

    def checked(text: str) -> str:
        if (found := fault(text)) is not None:
            raise ValueError(found)
        return text

    return AfterValidator(checked)


class OfHub(HfSource, frozen=True, extra="forbid"):
    """A repository of a hub; workers fetch what the engine takes of it, at the commit where it is now."""

    repository: Annotated[str, _without(fault_of_repository)]
    revision: Annotated[str, _without(fault_of_revision)] = ""
    file: Annotated[str, _without(fault_of_file)] = ""
    secret: Annotated[str, _without(fault_of_secret)] = ""


class OfWeb(HttpsSource, frozen=True, extra="forbid"):
    """A file at an address of the web, without a user, a password or another secret in it. `http` is for hosts that the
    workers' operators allow."""

    url: Annotated[str, _without(fault_of_file_url)]
    secret: Annotated[str, _without(fault_of_secret)] = ""


class OfBucket(S3Source, frozen=True, extra="forbid"):
    """An object of a bucket; or all objects under a prefix, which ends with `/` or is empty."""

    bucket: Annotated[str, _without(fault_of_bucket)]
    key: Annotated[str, _without(fault_of_key)]
    region: Annotated[str, _without(fault_of_region)] = "us-east-1"
    endpoint: Annotated[str, _without(fault_of_endpoint)] = ""
    secret: Annotated[str, _without(fault_of_secret)] = ""


class Sent(UploadSource, frozen=True, extra="forbid"):
    """Files that whoever deploys sends to the mesh, once it is accepted: see `PUT /api/uploads/{upload}/{file}`. The
    spec tells them in `files`, and in `weights` what the header of a GGUF file or a folder's `config.json` says."""


class SentFile(SourceFile, frozen=True, extra="forbid"):
    """A file that is to be sent."""


class SentWeights(Weights, frozen=True, extra="forbid"):
    """What the header of a file says that is to be sent, or a folder's `config.json`: what its memory is computed
    from."""

    format: Literal["gguf", "safetensors", "none"] = "none"


class Lora(BaseModel, frozen=True, extra="forbid"):
    """A LoRA that is loaded with the model and applied to all of its answers."""

    name: LoraName
    path: Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_absolute)]
    scale: LoraScale = 1.0


class LayoutBody(Layout, frozen=True, extra="forbid"):
    """What is fixed of how a replica lies over devices and nodes; it is kept to or refused. `gpus`: `node:index`, the
    index as the device's vendor counts it, from 0. `gpus_per_replica`: a wish, fewer are taken where they hold it.
    `distributed`: whether it may span nodes. `cpu_offload`: false keeps it off processors."""


class SpecBody(BaseModel, frozen=True, extra="forbid"):
    """What an admin wants of a model; see contracts' ModelSpec."""

    source: Annotated[Builtin | OnDisk | Simulated | OfHub | OfWeb | OfBucket | Sent, Field(discriminator="kind")]
    engine: EngineName
    context_tokens: Annotated[int, Field(ge=1, le=1 << 24)] = 1024
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 8
    engine_args: Annotated[dict[str, ArgumentValue], Field(max_length=64)] = {}
    min_replicas: Annotated[int, Field(ge=0, le=10_000)] = 1
    max_replicas: Annotated[int, Field(ge=0, le=10_000)] = 1
    spread_all: bool = False
    """A replica on each node that matches the selector, one a node; it goes with neither of the two numbers."""
    selector: Annotated[dict[str, str], Field(max_length=64)] = {}
    capability: Annotated[tuple[Capability, ...], Field(max_length=MOST_CAPABILITIES)] = ()
    """What its devices must have, one of these: `8.9` is that compute capability of NVIDIA's or a higher one, `gfx942`
    an architecture of AMD's. Then it is placed on no other device, nor on a processor."""
    anti_affinity: Annotated[str, Field(pattern=rf"^(?:{ANTI_AFFINITY})?$")] = ""
    """No node runs two replicas of models that name the same."""
    layout: LayoutBody = LayoutBody()
    policy: Annotated[str, Field(pattern=rf"^$|{POLICY_NAME}")] = ""
    """By which placement policy its replicas are placed, by name; empty: by the mesh's own."""
    priority: Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)] = 0
    """Of replicas without a place those of a higher priority come first, and none ends for one of a lower."""
    strategy: Literal["binpack", "spread"] = "binpack"
    """From before policies had names. `spread`: one replica of a revision on a node, and no more; `binpack` says
    nothing."""
    adapters: Annotated[tuple[Lora, ...], Field(max_length=MOST_LORA_ADAPTERS)] = ()
    files: Annotated[tuple[SentFile, ...], Field(max_length=MOST_FILES)] = ()
    """Of a source of kind `upload` alone: a GGUF file, or the parts of a split one in order; or a folder's safetensors
    files and then its small ones. Each with its blake3."""
    weights: SentWeights = SentWeights()
    """Of a source of kind `upload` alone: what the file's header or the folder's `config.json` says, as `weft deploy`
    reads it."""

    @field_validator("files", "weights")
    @classmethod
    def _of_uploads(cls, given: T, info: ValidationInfo) -> T:
        """What workers find out themselves is not told."""
        if not isinstance(info.data.get("source", Sent), Sent):
            raise ValueError("is told of a source of kind upload alone: leave it out")
        return given

    def spec(self) -> ModelSpec:
        """The spec as the log knows it; its weights are filled in from what the workers find, unless they are sent."""
        return ModelSpec.model_validate(self.model_dump())


_DEPLOY = {"name": "mine", "spec": {"source": {"kind": "builtin", "name": "tiny"}, "engine": "llama.cpp"}}
_HUB = {"kind": "hf", "repository": "Qwen/Qwen3-0.6B-GGUF", "file": "Q8_0"}
_FETCHED = {"name": "Qwen/Qwen3-0.6B", "spec": {"source": _HUB, "engine": "llama.cpp"}}


class DeployBody(BaseModel, frozen=True, extra="forbid", json_schema_extra={"examples": [_DEPLOY, _FETCHED]}):
    """A model, or a new revision of the model that bears this name."""

    name: ModelName
    spec: SpecBody


class RollbackBody(BaseModel, frozen=True, extra="forbid", json_schema_extra={"examples": [{"to": 3}]}):
    """Which revision is to be served again."""

    to: Annotated[int, Field(ge=1, le=1 << 31)] | None = None
    """Its number; left out, or null: the last one before the newest of which a replica was ready."""


def _budget(text: str) -> str:
    parse_budget(text)
    return text


BudgetText = Annotated[str, Field(max_length=64), AfterValidator(_budget)]
"""`80%`, `0.8`, `12GB`, `12GiB`; empty: no limit."""


DrainSeconds = Annotated[float, Field(ge=0, le=MAX_DRAIN_S)]
"""What still runs so many seconds later is told and ended."""


class DrainBody(BaseModel, frozen=True, extra="forbid"):
    """How a node is emptied."""

    deadline_s: DrainSeconds = DRAIN_S


class ReasonBody(BaseModel, frozen=True, extra="forbid"):
    """Why an admin does what they do; it stands in the log."""

    reason: Annotated[str, Field(max_length=MAX_REASON)] = ""


class RejectBody(BaseModel, frozen=True, extra="forbid"):
    """Why a machine is turned away: it is told."""

    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON)]


class ReplicaCapBody(BaseModel, frozen=True, extra="forbid"):
    """How many replicas of one model a node takes at most; 0: no cap."""

    value: Annotated[int, Field(ge=0, le=10_000)]


class BudgetBody(BaseModel, frozen=True, extra="forbid"):
    """How much of each device replicas may claim."""

    value: BudgetText

    @property
    def budget(self) -> VramBudget:
        """As the log knows it."""
        return parse_budget(self.value)


class TokenBody(BaseModel, frozen=True, extra="forbid"):
    """A registration token to be made."""

    name: Annotated[str, Field(max_length=63, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    """What people call it; need not be unique."""
    expires_in_s: Annotated[float, Field(gt=0, le=10 * 365 * 86_400)] | None = None
    """Seconds from now; null: until it is revoked."""
    auto_approve: bool = False
    """Whoever joins with it is approved at once."""
    most_waiting: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """So many nodes that joined with it may wait for approval at once, and so many may come within a minute; null: as
    many as the settings say."""


class SecretBody(BaseModel, frozen=True, extra="forbid"):
    """The value of a secret. It is sealed at once and shown by nothing."""

    value: Annotated[SecretStr, Field(min_length=1, max_length=MOST_BYTES)]
    """Text, of at most 32 KiB as UTF-8."""


class AliasTargetBody(BaseModel, frozen=True, extra="forbid"):
    """A model that an alias stands for."""

    model: ModelName
    """Its name or id; no alias."""
    weight: Annotated[int, Field(ge=1, le=MOST_WEIGHT)] = 1
    """Its share beside the others' weights; with `rule: order` it says nothing."""


_ALIAS = {"rule": "weights", "targets": [{"model": "local", "weight": 80}, {"model": "cloud", "weight": 20}]}


class AliasBody(BaseModel, frozen=True, extra="forbid", json_schema_extra={"examples": [_ALIAS]}):
    """What a name stands for."""

    rule: AliasRule = "weights"
    """A draw by weights among the models that can take a request; or the first, in their order, that can."""
    targets: Annotated[list[AliasTargetBody], Field(min_length=1, max_length=MOST_TARGETS)]


class KeyBody(BaseModel, frozen=True, extra="forbid"):
    """An API key to be made."""

    name: Annotated[str, Field(max_length=63, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    """Who bears it, in an admin's words. Never in the log; it can be erased."""
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)] = ["inference"]
    models: Annotated[list[ModelName], Field(min_length=1, max_length=64)] | None = None
    """Names of the only models that it may use, there or not yet; null: all."""
    expires_in_s: Annotated[float, Field(gt=0, le=10 * 365 * 86_400)] | None = None
    """Seconds from now; null: until it is revoked."""
