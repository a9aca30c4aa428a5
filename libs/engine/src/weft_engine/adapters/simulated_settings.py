"""What a simulated engine can be told: its speed, its memory, and how it is to fail."""

import asyncio
from typing import Self

from pydantic import BaseModel, ConfigDict
from weft_dataplane import LoadFailed

from weft_engine.launch import Launch


class SimulatedSettings(BaseModel):
    """The `engine_args` of a simulated engine, once they are checked against its profile, which has their ranges."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ms_per_token: float = 10.0
    """time of one step, in which each running request gets one token; 0: as fast as it goes"""
    prefill_tokens_per_s: float = 0.0
    """prompt tokens computed each second, all requests together; 0: at once"""
    concurrency: int | None = None
    """requests that run at once; the launch's own when absent"""
    memory_bytes: int = 0
    """what the model pretends to need"""
    memory_limit_bytes: int | None = None
    """what it may use; loading fails for good when it needs more"""
    block_tokens: int = 16
    """tokens in a block of the prefix cache"""
    cache_blocks: int = 4096
    """blocks that the prefix cache holds"""
    load_seconds: float = 0.0
    fail_load: str = ""
    """why loading fails; empty: it doesn't"""
    fail_load_permanent: bool = True
    die_after_tokens: int = 0
    """the process is killed after so many tokens; 0: never"""
    stall_after_tokens: int = 0
    """the engine stands still after so many tokens; 0: never"""
    embeddings: bool = False
    """answer Embed instead of Submit"""
    dimensions: int = 64
    """numbers of an embedding's vector"""

    @classmethod
    def of(cls, launch: Launch) -> Self:
        """The launch's settings."""
        return cls.model_validate(launch.engine_args)

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
