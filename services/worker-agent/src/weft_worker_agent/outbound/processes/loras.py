"""The LoRA adapters that an engine is to load with its model, as they lie on this node."""

from dataclasses import dataclass

from weft_contracts.digest import lora_key
from weft_contracts.engines import Profiles
from weft_contracts.facts.values import ModelSpec

from weft_worker_agent.outbound.files.found import NotFound
from weft_worker_agent.outbound.files.model_files import look


@dataclass(frozen=True, slots=True)
class Lora:
    """One of them, as a launch names it."""

    name: str
    path: str
    scale: float


def loras_of(spec: ModelSpec, engines: Profiles) -> tuple[Lora, ...]:
    """A spec's adapters. Reads their files: call it in a thread. Raises NotFound where one isn't what was accepted."""
    found: list[Lora] = []
    for adapter in spec.adapters:
        there = look(lora_key(adapter), spec.engine, engines)
        if there.weights.fingerprint != adapter.fingerprint:
            raise NotFound(f"the LoRA adapter {adapter.path} has changed since it was deployed: deploy it again")
        found.append(Lora(adapter.name, adapter.path, adapter.scale))
    return tuple(found)
