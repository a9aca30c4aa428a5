"""An engine's profile as an admin sends it. Unknown fields are refused: a typo must not pass as a default."""

from typing import Annotated

from pydantic import BaseModel, Field
from weft_contracts.engines import Argument, ArgumentClaim, EngineProfile, FileFormat, HeaderClaim, Install
from weft_contracts.engines.profile import ArgumentName, LoraSupport, Span, Task
from weft_contracts.facts.values import EngineName, Vendor


class ArgumentBody(Argument, frozen=True, extra="forbid"):
    """What may stand in a spec's `engine_args` under one name."""


class HeaderClaimBody(HeaderClaim, frozen=True, extra="forbid"):
    """Weights and the KV cache as the file's header tells them, and what the process takes beside them, in bytes."""


class ArgumentClaimBody(ArgumentClaim, frozen=True, extra="forbid"):
    """What one of the arguments says, in bytes."""


class LoraBody(LoraSupport, frozen=True, extra="forbid"):
    """Which LoRA adapters the engine applies."""


class InstallBody(Install, frozen=True, extra="forbid"):
    """What is installed for the engine."""


_MINE = {
    "name": "mine",
    "serves": ["chat"],
    "formats": ["gguf"],
    "vendors": ["cpu"],
    "claim": {"formula": "header", "slack": 0.05, "overhead": 0, "cpu_overhead": 3 << 20},
    "arguments": {"times": {"type": "integer", "least": 1, "most": 3}},
    "install": {"package": "weft-mine", "adapter": "weft_mine.adapter:Mine"},
}


class EngineProfileBody(BaseModel, frozen=True, extra="forbid", json_schema_extra={"examples": [_MINE]}):
    """All that there is to know of an engine; see contracts' EngineProfile."""

    name: EngineName
    serves: tuple[Task, ...]
    formats: tuple[FileFormat, ...] = ()
    vendors: tuple[Vendor, ...]
    made_up_devices: bool = False
    claim: Annotated[HeaderClaimBody | ArgumentClaimBody, Field(discriminator="formula")]
    splits: tuple[Span, ...] = ()
    resumes_greedy: bool = False
    lora: LoraBody | None = None
    arguments: Annotated[dict[ArgumentName, ArgumentBody], Field(max_length=64)] = {}
    install: InstallBody

    def profile(self) -> EngineProfile:
        """As the log knows it."""
        return EngineProfile.model_validate(self.model_dump())
