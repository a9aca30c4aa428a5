"""The LoRA adapter that vLLM applies to all that a replica answers."""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from weft_dataplane import LoadFailed

from weft_engine.launch import Launch

RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""That vLLM makes room for."""


class Lora(NamedTuple):
    """A LoRA adapter as peft writes it."""

    name: str
    path: str
    room: int
    """the rank that vLLM makes room for"""
    bytes: int

    @property
    def arguments(self) -> dict[str, Any]:
        """What vLLM is started with so that it takes this one."""
        return {"enable_lora": True, "max_loras": 1, "max_cpu_loras": 1, "max_lora_rank": self.room}


def lora_of(launch: Launch) -> Lora | None:
    """The launch's adapter; None: it has none. Reads its configuration. Raises LoadFailed."""
    if not launch.adapters:
        return None
    (adapter,) = launch.adapters
    name = f"the LoRA adapter {adapter.name}"
    if adapter.scale != 1:
        raise LoadFailed(f"{name} has the scale {adapter.scale:g}: vLLM applies adapters as they are", permanent=True)
    folder = Path(adapter.path)
    try:
        config: Any = json.loads((folder / "adapter_config.json").read_bytes())
        size = (folder / "adapter_model.safetensors").stat().st_size
    except FileNotFoundError as missing:
        raise LoadFailed(f"{name} is not there: {missing.filename} does not exist", permanent=True) from None
    except (OSError, ValueError) as error:
        raise LoadFailed(f"{name} can't be read: {error}", permanent=True) from None
    rank = cast("dict[str, Any]", config).get("r") if isinstance(config, dict) else None
    if isinstance(rank, bool) or not isinstance(rank, int) or not 1 <= rank <= RANKS[-1]:
        raise LoadFailed(f"{name} has the rank {rank!r}: vLLM takes 1 to {RANKS[-1]}", permanent=True)
    return Lora(adapter.name, adapter.path, next(room for room in RANKS if rank <= room), size)
