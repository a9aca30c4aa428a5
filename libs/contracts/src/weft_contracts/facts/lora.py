"""LoRA adapters, as a spec names them."""

from typing import Annotated

from pydantic import Field

from weft_contracts.facts.fact import Count, Value

MOST_LORA_ADAPTERS = 16
"""That one spec names."""
LoraName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
LoraScale = Annotated[float, Field(ge=-100, le=100)]


class LoraAdapter(Value, frozen=True):
    """A LoRA that is loaded with a model and applied to all that the model answers."""

    name: LoraName
    path: str
    """Where workers have it on their own disks: a GGUF file for a GGUF model, else a folder as peft writes it."""
    scale: LoraScale = 1.0
    """How much of it is applied; 0: nothing."""
    bytes: Annotated[Count, Field(exclude_if=lambda size: not size)] = 0
    """Of its tensors. This and the next are filled in by the reconciler from what the workers found."""
    fingerprint: Annotated[str, Field(exclude_if=lambda text: not text)] = ""
    """Of its content."""
