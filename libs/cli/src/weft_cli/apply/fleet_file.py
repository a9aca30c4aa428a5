"""The file of `weft apply`: models, aliases and policies, as the commands for one of them take them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import BaseModel, Field, PlainValidator, ValidationError
from weft_contracts.aliases import MOST_TARGETS, MOST_WEIGHT
from weft_contracts.capability import MOST_CAPABILITIES, Capability
from weft_contracts.facts.layout import MOST_DEVICES, MOST_NODES_NAMED, Layout
from weft_contracts.facts.rollout import MaxSurge, MaxUnavailable, ProgressSeconds, RolloutRules
from weft_contracts.facts.sizing import OwnScaling
from weft_contracts.facts.values import MOST_PRIORITY
from weft_contracts.policies import BUILTIN_NAMES, PlacementPolicy
from weft_contracts.written_policy import UnreadablePolicy, policy_of

MOST_MODELS = 1000

MOST_REPLICAS = 10_000
ALL = "all"
Devices = Annotated[int, Field(ge=1, le=MOST_DEVICES)]
Replicas = Annotated[int, Field(ge=0, le=MOST_REPLICAS)]


def _replicas(given: object) -> object:
    if given == ALL or (type(given) is int and 0 <= given <= MOST_REPLICAS):
        return given
    raise ValueError(f"want a whole number from 0 to {MOST_REPLICAS}, or {ALL}")


def _shares(given: object) -> object:
    """Names alike have the share 1 each."""
    shares: Mapping[object, object] = {}
    if isinstance(given, list):
        names = cast("list[object]", given)
        shares = dict.fromkeys(names, 1) if all(isinstance(each, str) for each in names) else {}
    elif isinstance(given, Mapping):
        shares = cast("Mapping[object, object]", given)
    right = all(
        isinstance(name, str) and type(share) is int and 1 <= share <= MOST_WEIGHT for name, share in shares.items()
    )
    if 1 <= len(shares) <= MOST_TARGETS and right:
        return dict(shares)
    raise ValueError(f"want 1 to {MOST_TARGETS} names, in a list or each with its share from 1 to {MOST_WEIGHT}")


class FleetFault(ValueError):
    """What is wrong with a file: one line for each field, with its path."""


class ScalingEntry(OwnScaling, frozen=True, extra="forbid", strict=True):
    """Figures of a model's own; what isn't said is the mesh's."""


class ModelEntry(BaseModel, frozen=True, extra="forbid", strict=True):
    """What `weft deploy` takes, with its words."""

    source: str
    name: Annotated[str, Field(min_length=1)] | None = None
    source_secret: str | None = None
    engine: str | None = None
    engine_args: dict[str, Any] = {}
    loras: Annotated[list[str], Field(max_length=16)] = []
    """Each `NAME[:SCALE]=PATH`."""
    replicas: Annotated[Any, PlainValidator(_replicas)] = None
    """`all`: one on each node that matches the selector."""
    min: Replicas | None = None
    max: Replicas | None = None
    """0: no upper bound."""
    selector: Annotated[dict[str, str], Field(max_length=64)] = {}
    capability: Annotated[list[Capability], Field(max_length=MOST_CAPABILITIES)] = []
    anti_affinity: str = ""
    context: Annotated[int, Field(ge=1)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=1024)] | None = None
    policy: str | None = None
    tensor_parallel: Devices | None = None
    pipeline_parallel: Devices | None = None
    gpus: Annotated[list[str], Field(max_length=MOST_DEVICES)] = []
    """Each `node:index`."""
    gpus_per_replica: Devices | None = None
    preferred_nodes: Annotated[list[str], Field(max_length=MOST_NODES_NAMED)] = []
    distributed: bool | None = None
    cpu_offload: bool | None = None

    @property
    def layout(self) -> dict[str, Any]:
        """What is fixed of how a replica lies over devices, in the spec's fields."""
        told = {name: getattr(self, name) for name in Layout.model_fields}
        return {name: value for name, value in told.items() if value not in (None, [])}

    priority: Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)] | None = None
    max_surge: MaxSurge = RolloutRules().max_surge
    max_unavailable: MaxUnavailable = RolloutRules().max_unavailable
    progress: ProgressSeconds = RolloutRules().progress_s
    """Seconds."""
    scaling: ScalingEntry = ScalingEntry()

    @property
    def scheduling(self) -> dict[str, Any]:
        """How its revisions replace one another and what it is sized by, in the API's fields."""
        rules = {"max_surge": self.max_surge, "max_unavailable": self.max_unavailable, "progress_s": self.progress}
        return {**rules, "scaling": self.scaling.said}

    @property
    def numbers(self) -> dict[str, int | bool]:
        """How many there are to be, in the spec's fields."""
        if self.replicas == ALL:
            return {"min_replicas": 1, "max_replicas": 1, "spread_all": True}
        least = self.min if self.replicas is None else self.replicas
        least = 1 if least is None else least
        most = self.max if self.max is not None else max(1, least)
        return {"min_replicas": least, "max_replicas": most, "spread_all": False}


class AliasEntry(BaseModel, frozen=True, extra="forbid", strict=True):
    """A name that stands for several models: by shares, or for the first that can take a request."""

    name: Annotated[str, Field(min_length=1)]
    models: Annotated[dict[str, int], PlainValidator(_shares)]
    """Names alike, or each with its share."""
    in_order: bool = False

    @property
    def body(self) -> dict[str, Any]:
        """As the API takes it."""
        targets = [{"model": name, "weight": weight} for name, weight in self.models.items()]
        return {"rule": "order" if self.in_order else "weights", "targets": targets}


class FleetFile(BaseModel, frozen=True, extra="forbid", strict=True):
    """What a mesh is to serve. A section that isn't there is none of the file's business."""

    models: Annotated[list[ModelEntry], Field(max_length=MOST_MODELS)] | None = None
    aliases: list[AliasEntry] | None = None
    policies: list[Any] | None = None
    default_policy: str | None = None
    """The mesh's own."""

    @property
    def told(self) -> list[PlacementPolicy]:
        """The policies. They were read once, so they can be."""
        return [policy_of(each) for each in self.policies or ()]


def fleet_file_of(body: object) -> FleetFile:
    """What a file says, in plain values. Raises FleetFault, which has a line for each bad field."""
    if not isinstance(body, Mapping):
        raise FleetFault("it holds no fields: want models, aliases or policies")
    try:
        found = FleetFile.model_validate(dict(cast("Mapping[Any, Any]", body)))
    except ValidationError as error:
        lines = dict.fromkeys(_line(each["loc"], each["type"], each["msg"]) for each in error.errors(include_url=False))
        raise FleetFault("\n".join(lines)) from None
    faults = [*_numbers(found), *_policies(found)]
    faults += _doubled(found) if not faults else ()
    if faults:
        raise FleetFault("\n".join(faults))
    return found


def _line(loc: Sequence[int | str], type: str, message: str) -> str:
    """`models[0].context: want …`."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    match type:
        case "extra_forbidden":
            return f"{path}: is no field here"
        case "missing":
            return f"{path}: is missing"
        case "string_type":
            return f"{path}: want a text; put it in quotes where YAML reads it otherwise"
        case "too_long":
            return f"{path}: {message.partition(', not')[0].replace('should have', 'want')}"
        case _:
            return f"{path}: {message.removeprefix('Value error, ').replace('Input should be', 'want', 1)}"


def _numbers(file: FleetFile) -> Iterator[str]:
    for place, model in enumerate(file.models or ()):
        where = f"models[{place}]"
        if not (model.max_surge or model.max_unavailable):
            yield f"{where}.max_surge: is 0, and so is max_unavailable: nothing could be replaced; let one be 1"
        if model.replicas is not None and (model.min is not None or model.max is not None):
            yield f"{where}.replicas: goes with neither min nor max: leave one of them out"
            continue
        numbers = model.numbers
        if numbers["max_replicas"] and numbers["max_replicas"] < numbers["min_replicas"]:
            yield f"{where}.max: {model.max} is below min {model.min}: raise it, or say 0 for no upper bound"


def _policies(file: FleetFile) -> Iterator[str]:
    for place, body in enumerate(file.policies or ()):
        try:
            told = policy_of(body)
        except UnreadablePolicy as fault:
            yield f"policies[{place}].{fault}" if isinstance(body, Mapping) else f"policies[{place}]: {fault}"
            continue
        if told.name in BUILTIN_NAMES:
            yield f"policies[{place}].name: {told.name} is one that Weft comes with: choose another"


def _doubled(file: FleetFile) -> Iterator[str]:
    """Names that stand twice: a name is a model's or an alias's."""
    seen: dict[str, str] = {}
    named: list[tuple[str, str | None]] = [
        (f"models[{place}]", each.name) for place, each in enumerate(file.models or ())
    ]
    named += [(f"aliases[{place}]", each.name) for place, each in enumerate(file.aliases or ())]
    for where, name in named:
        if name is None:  # made of the source, once that is read
            continue
        if name in seen:
            yield f"{where}.name: {name} is the name of {seen[name]}, too"
        seen.setdefault(name, where)
    policies = [each.name for each in file.told]
    for place, name in enumerate(policies):
        if name in policies[:place]:
            yield f"policies[{place}].name: {name} is the name of policies[{policies.index(name)}], too"
