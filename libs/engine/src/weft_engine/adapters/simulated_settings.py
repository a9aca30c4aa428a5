"""What a simulated engine can be told: its speed, its memory, and how it is to fail."""

import asyncio
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from weft_dataplane import LoadFailed

from weft_engine.launch import Launch, first_fault


class SimulatedSettings(BaseModel):
    """The `engine_args` of a simulated engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ms_per_token: float = Field(default=10.0, ge=0, le=60_000)
    """time of one step, in which each running request gets one token; 0: as fast as it goes"""
    prefill_tokens_per_s: float = Field(default=0.0, ge=0)
    """prompt tokens computed each second, all requests together; 0: at once"""
    concurrency: int | None = Field(default=None, ge=1, le=4096)
    """requests that run at once; the launch's own when absent"""
    memory_bytes: int = Field(default=0, ge=0)
    """what the model pretends to need"""
    memory_limit_bytes: int | None = Field(default=None, ge=0)
    """what it may use; loading fails for good when it needs more"""
    block_tokens: int = Field(default=16, ge=1)
    """tokens in a block of the prefix cache"""
    cache_blocks: int = Field(default=4096, ge=0)
    """blocks that the prefix cache holds"""
    load_seconds: float = Field(default=0.0, ge=0, le=3600)
    fail_load: str = ""
    """why loading fails; empty: it doesn't"""
    fail_load_permanent: bool = True
    die_after_tokens: int = Field(default=0, ge=0)
    """the process is killed after so many tokens; 0: never"""
    stall_after_tokens: int = Field(default=0, ge=0)
    """the engine stands still after so many tokens; 0: never"""
    embeddings: bool = False
    """answer Embed instead of Submit"""
    dimensions: int = Field(default=64, ge=1, le=8192)
    """numbers of an embedding's vector"""

    @classmethod
    def of(cls, launch: Launch) -> Self:
        """The launch's settings. Raises LoadFailed for a wrong one, with what would be right."""
        try:
            return cls.model_validate(launch.engine_args)
        except ValidationError as error:
            raise LoadFailed(
                f"the simulated engine's settings are wrong: {first_fault(error)} "
                f"(it has {', '.join(cls.model_fields)})",
                permanent=True,
            ) from None

    async def pretend_to_load(self) -> None:
        """Take the time that loading takes. Raises LoadFailed when it was told to."""
        await asyncio.sleep(self.load_seconds)
        if self.fail_load:
            raise LoadFailed(self.fail_load, permanent=self.fail_load_permanent)
        if self.memory_limit_bytes is not None and self.memory_bytes > self.memory_limit_bytes:
            raise LoadFailed(
                f"out of memory: the model needs {self.memory_bytes} bytes, it may use {self.memory_limit_bytes}",
                permanent=True,
            )
