"""An engine's profile: all that services and tools know of it. Sizes are bytes."""

import functools
import hashlib
import json
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from weft_contracts.facts.fact import Count, Value
from weft_contracts.facts.lora import MOST_LORA_ADAPTERS
from weft_contracts.facts.values import EngineName, Vendor

Task = Literal["chat", "embeddings", "rerank"]
FileFormat = Literal["gguf", "safetensors"]
"""How a model's files are written; workers have a reader for each."""
Span = Literal["devices", "nodes"]
ArgumentName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


def _plainest(number: int | float) -> int | float:
    """A whole number is written as one, so that equal profiles have one digest."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


_BOUNDS = Field(ge=-(1 << 53), le=1 << 53)
Number = Annotated[Annotated[int, _BOUNDS] | Annotated[float, _BOUNDS], AfterValidator(_plainest)]


class HeaderClaim(Value, frozen=True):
    """Weights and the KV cache as the file's header tells them, and what the process takes beside them."""

    formula: Literal["header"] = "header"
    slack: Annotated[float, Field(ge=0, le=1)]
    """Of the weights: fragments and padding."""
    overhead: Count
    """On each accelerator: activations, buffers, graphs."""
    cpu_overhead: Count
    """On a processor."""
    share_argument: ArgumentName | None = None
    """The argument that names a share of each device, which is then claimed whatever the model needs."""
    host_overhead: Count = 0
    """Of the machine's memory, for each accelerator beside it: the process, and buffers that the device reads."""
    layers_argument: ArgumentName | None = None
    """The argument that says how many layers lie on an accelerator, as llama.cpp counts them: the output first, then
    layers from the last on. Where it is more than 0 and not all, the claim is computed from the sizes of single layers:
    what lies on the accelerator, and of the machine's memory the rest. 0: the replica goes to a processor; less: as if
    it were absent."""
    step_argument: ArgumentName | None = None
    """The argument that says how many tokens are computed in one step at most."""
    step_tokens: Count = 0
    """Where it is absent."""
    step_bytes: Count = 0
    """Of the overhead, what counts for one step's activations: what they take beyond is claimed beside. 0: the overhead
    counts for all of them."""
    drops_before_windows: bool = False
    """Layers with a sliding window keep that and one step's tokens, and no more."""
    block_tokens: Count = 0
    """It keeps its cache in blocks of so many tokens at most, where `block_size` says nothing, and layers of one sort
    together in groups, as vLLM does; 0: not so."""
    draft_argument: ArgumentName | None = None
    """The argument that names a draft model by its path on the workers: its weights, its cache for the same requests
    and its step are claimed beside the model's."""


class ArgumentClaim(Value, frozen=True):
    """What one of its arguments says."""

    formula: Literal["argument"] = "argument"
    argument: ArgumentName
    default: Count
    """Where the argument is absent."""


Claim = Annotated[HeaderClaim | ArgumentClaim, Field(discriminator="formula")]
"""Which of placement's formulas computes a replica's claim, with the formula's figures."""


ArgumentType = Literal["boolean", "integer", "number", "text", "list", "object"]
STRUCTURED: frozenset[ArgumentType] = frozenset(("list", "object"))
"""Types that facts have words for from their version 2 on."""


class Argument(Value, frozen=True):
    """What may stand in a spec's `engine_args` under one name."""

    type: ArgumentType
    least: Number | None = None
    most: Number | None = None
    above: Number | None = None
    """It must be greater."""
    choices: tuple[str, ...] = ()
    """Of a text; empty: any."""
    form: Literal["", "server_url", "secret"] = ""
    """Of a text: where an HTTP server is, or the name of a secret as `secret:NAME`; empty: any."""
    required: bool = False
    """A spec without it is refused."""


class LoraSupport(Value, frozen=True):
    """Which LoRA adapters of a spec the engine applies."""

    most: Annotated[int, Field(ge=1, le=MOST_LORA_ADAPTERS)]
    """At once."""
    scales: bool = False
    """Whether it takes another scale than the adapter's own."""


class Install(Value, frozen=True):
    """What must be installed beside `weft-engine` to run the engine."""

    package: str
    """The distribution whose version is the engine's."""
    also: tuple[str, ...] = ()
    """Its names elsewhere: the same engine, built for other devices."""
    extra: str = ""
    """Of weft-engine, where that brings it."""
    adapter: str = ""
    """`module:name` of the adapter; empty: there is none, so no host can run it."""
    vendors: tuple[Vendor, ...] = ()
    """Whose devices the package computes on where no recipe chose it; empty: those of all the engine's vendors."""


class EngineProfile(Value, frozen=True):
    """One engine."""

    name: EngineName
    serves: tuple[Task, ...]
    formats: tuple[FileFormat, ...] = ()
    """That it loads, the preferred one first; empty: it takes no files."""
    vendors: tuple[Vendor, ...]
    """Whose devices the package that is installed for it computes on."""
    made_up_devices: bool = False
    """It runs on devices that are made up for development, in place of its vendors' where there are such."""
    claim: Claim
    splits: tuple[Span, ...] = ()
    """What one replica may be spread over."""
    resumes_greedy: bool = False
    """Another replica goes on with its greedy text, word for word."""
    lora: LoraSupport | None = None
    """None: it takes no LoRA adapters."""
    arguments: dict[ArgumentName, Argument] = Field(default_factory=dict[ArgumentName, Argument])
    install: Install

    @property
    def needs(self) -> int:
        """The lowest version of a fact that can say this profile: 2 where an argument is a list or an object."""
        return 2 if any(argument.type in STRUCTURED for argument in self.arguments.values()) else 1

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def digest(self) -> str:
        """16 hex digits over all of it but what is as by default: a field that a later version adds leaves the
        digests of those alone that don't use it."""
        return _digest(self)


@functools.lru_cache(maxsize=256)
def _digest(profile: EngineProfile) -> str:
    body = profile.model_dump(mode="json", exclude_defaults=True)
    body["claim"]["formula"] = profile.claim.formula
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
