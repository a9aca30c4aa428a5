"""Checks what a launch gives an engine against what the engine's profile says of it."""

from weft_contracts.engines import EngineProfile
from weft_contracts.engines.given import fault_of_given
from weft_dataplane import LoadFailed

from weft_engine.launch import Launch


def check_arguments(launch: Launch, profile: EngineProfile) -> None:
    """Raises LoadFailed for a wrong one, with what would be right, and for LoRA adapters that it can't apply."""
    if launch.adapters and (profile.lora is None or len(launch.adapters) > profile.lora.most):
        most = 0 if profile.lora is None else profile.lora.most
        raise LoadFailed(f"{profile.name} applies {most} LoRA adapters, not {len(launch.adapters)}", permanent=True)
    if (fault := fault_of_given(profile, launch.engine_args)) is not None:
        raise LoadFailed(fault, permanent=True)
