"""What llama.cpp can be told beyond the launch, by names close to its own."""

from typing import Self

from pydantic import BaseModel, ConfigDict

from weft_engine.launch import Launch


class LlamaCppSettings(BaseModel):
    """The `engine_args` of llama.cpp, once they are checked against its profile, which has their ranges.

    An absent one is llama.cpp's default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpu_layers: int | None = None
    """layers on accelerators, the output first, then from the last on; -1, or as many as the model has: all; absent:
    all where the replica claims one, else none"""
    batch_tokens: int | None = None
    """prompt tokens computed between two looks at the running requests"""
    micro_batch_tokens: int | None = None
    """tokens computed at once on the device"""
    batch_threads: int | None = None
    """threads for prompts; the launch's threads when absent"""
    flash_attention: bool | None = None
    cache_type_k: str | None = None
    cache_type_v: str | None = None
    cache_ram_mib: int = 0
    """host memory for prompts of ended requests, beside the claim"""
    load_in_memory: bool = False
    """read the file instead of mapping it"""
    draft_model: str | None = None
    """path of a small model with the same vocabulary, which guesses tokens that the model then checks many at once;
    where the replica claims an accelerator all of it lies there"""
    draft_tokens: int | None = None
    """that it guesses at once at most"""
    chat_template: str | None = None
    """instead of the file's own"""
    embeddings: bool | None = None
    """answer Embed instead of Submit; by default so for encoders"""
    pooling: str | None = None
    """how token vectors become one; the file's own when absent"""

    @classmethod
    def of(cls, launch: Launch) -> Self:
        """The launch's settings."""
        return cls.model_validate(launch.engine_args)
