"""Checks `engine_args` against what an engine's profile says of each."""

from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue, ValidationError, create_model
from weft_contracts.engines import Argument, ArgumentType, EngineProfile
from weft_contracts.engines.given import fault_of_given
from weft_dataplane import LoadFailed

from weft_engine.launch import Launch, first_fault

_TYPES: dict[ArgumentType, Any] = {
    "boolean": bool,
    "integer": int,
    "number": float,
    "text": str,
    "list": list[JsonValue],
    "object": dict[str, JsonValue],
}


def check_arguments(launch: Launch, profile: EngineProfile) -> None:
    """Raises LoadFailed for a wrong one, with what would be right, and for LoRA adapters that it can't apply."""
    if launch.adapters and (profile.lora is None or len(launch.adapters) > profile.lora.most):
        most = 0 if profile.lora is None else profile.lora.most
        raise LoadFailed(f"{profile.name} applies {most} LoRA adapters, not {len(launch.adapters)}", permanent=True)
    if (fault := fault_of_given(profile, launch.engine_args)) is not None:
        raise LoadFailed(fault, permanent=True)
    fields: dict[str, Any] = {name: _field(argument) for name, argument in profile.arguments.items()}
    try:
        create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields).model_validate(launch.engine_args)
    except ValidationError as error:
        raise LoadFailed(
            f"the {profile.name} settings are wrong: {first_fault(error)} (it has {', '.join(profile.arguments)})",
            permanent=True,
        ) from None


def _field(argument: Argument) -> tuple[Any, Any]:
    kind = Literal[argument.choices] if argument.choices else _TYPES[argument.type]
    return kind, Field(default=None, ge=argument.least, le=argument.most, gt=argument.above)
