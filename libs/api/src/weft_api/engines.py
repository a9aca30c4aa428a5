"""Answers about engines: what the mesh knows of each. Sizes are bytes."""

from typing import Literal

from typing_extensions import TypedDict
from weft_contracts.engines.profile import ArgumentType, FileFormat, Span, Task
from weft_contracts.facts.values import EngineName, Vendor


class EngineArgument(TypedDict):
    """What may stand in a spec's `engine_args` under one name; null: no such bound."""

    type: ArgumentType
    least: int | float | None
    most: int | float | None
    above: int | float | None
    choices: list[str]
    form: Literal["", "server_url", "secret"]
    required: bool


class HeaderClaim(TypedDict):
    """A claim that is computed from the file's header."""

    formula: Literal["header"]
    slack: float
    overhead: int
    cpu_overhead: int
    share_argument: str | None
    host_overhead: int
    layers_argument: str | None
    step_argument: str | None
    step_tokens: int
    step_bytes: int
    drops_before_windows: bool
    block_tokens: int
    draft_argument: str | None


class ArgumentClaim(TypedDict):
    """A claim that one of the arguments says."""

    formula: Literal["argument"]
    argument: str
    default: int


class LoraSupport(TypedDict):
    """Which LoRA adapters an engine applies: how many at once, and whether by another scale than their own."""

    most: int
    scales: bool


class EngineInstall(TypedDict):
    """What is installed for an engine; `also`: the package's names where it is built for other devices; `vendors`:
    whose devices the package computes on where no recipe chose it, empty for all of the engine's."""

    package: str
    also: list[str]
    extra: str
    adapter: str
    vendors: list[Vendor]


class EngineProfile(TypedDict):
    """One engine. `digest` is what a worker must report of it; `builtin`: Weft comes with it."""

    name: EngineName
    digest: str
    builtin: bool
    serves: list[Task]
    formats: list[FileFormat]
    vendors: list[Vendor]
    made_up_devices: bool
    claim: HeaderClaim | ArgumentClaim
    splits: list[Span]
    resumes_greedy: bool
    lora: LoraSupport | None
    arguments: dict[str, EngineArgument]
    install: EngineInstall


class EngineProfilePage(TypedDict):
    """Engines by name, and the cursor of the next page."""

    items: list[EngineProfile]
    next: str | None
