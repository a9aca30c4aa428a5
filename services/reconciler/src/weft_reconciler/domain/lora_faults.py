"""What can be wrong with a spec's LoRA adapters: by themselves, or beside the model. Each fault is one sentence."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from weft_contracts.engines import Profiles
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec, Weights

from weft_reconciler.domain.spec_faults import LONGEST_PATH


def fault_of_loras(spec: ModelSpec, engines: Profiles) -> str | None:
    """What is wrong with a spec's adapters whatever the nodes have."""
    if not spec.adapters:
        return None
    support = engines[spec.engine].lora
    if support is None or isinstance(spec.source, SimulatedSource):
        return f"the engine {spec.engine} takes no LoRA adapters: leave adapters out, or choose another engine"
    if len(spec.adapters) > support.most:
        return f"the spec names {len(spec.adapters)} LoRA adapters, and {spec.engine} applies {support.most} at most"
    names = [adapter.name for adapter in spec.adapters]
    for adapter in spec.adapters:
        if names.count(adapter.name) > 1:
            return f"two LoRA adapters are named {adapter.name}: give each a name of its own"
        if adapter.scale != 1 and not support.scales:
            return (
                f"the LoRA adapter {adapter.name} has the scale {adapter.scale:g}, and {spec.engine} applies adapters "
                "as they are: leave the scale out"
            )
        path = adapter.path
        if len(path) > LONGEST_PATH or not path.isprintable() or not PurePosixPath(path).is_absolute():
            return f"the LoRA adapter {adapter.name} is at {path!r}: give its path on the workers from the root on"
    return None


def fault_of_fit(spec: ModelSpec, model: Weights, found: Sequence[Weights]) -> str | None:
    """What is wrong with adapters beside the model that they are for."""
    for adapter, own in zip(spec.adapters, found, strict=True):
        if own.architecture and model.architecture and own.architecture != model.architecture:
            return (
                f"the LoRA adapter {adapter.name} is made for the architecture {own.architecture}, "
                f"the model is {model.architecture}"
            )
        if own.layers > model.layers:
            return (
                f"the LoRA adapter {adapter.name} changes layer {own.layers - 1}, "
                f"the model's layers are 0 to {model.layers - 1}: it is made for another"
            )
    return None


def with_sizes(adapters: Sequence[LoraAdapter], found: Sequence[Weights]) -> tuple[LoraAdapter, ...]:
    """The adapters with what a node found of each."""
    return tuple(
        adapter.model_copy(update={"bytes": own.weight_bytes, "fingerprint": own.fingerprint})
        for adapter, own in zip(adapters, found, strict=True)
    )
