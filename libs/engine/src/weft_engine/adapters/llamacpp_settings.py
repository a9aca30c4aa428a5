"""What llama.cpp can be told beyond the launch, by names close to its own."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from weft_dataplane import LoadFailed

from weft_engine.launch import Launch, first_fault

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"]


class LlamaCppSettings(BaseModel):
    """The `engine_args` of llama.cpp; an absent one is llama.cpp's default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpu_layers: int = Field(default=0, ge=-1)
    """layers on the GPU; -1: all"""
    batch_tokens: int | None = Field(default=None, ge=1)
    """prompt tokens computed between two looks at the running requests"""
    micro_batch_tokens: int | None = Field(default=None, ge=1)
    """tokens computed at once on the device"""
    batch_threads: int | None = Field(default=None, ge=1)
    """threads for prompts; the launch's threads when absent"""
    flash_attention: bool | None = None
    cache_type_k: CacheType | None = None
    cache_type_v: CacheType | None = None
    cache_ram_mib: int = Field(default=0, ge=0)
    """host memory for prompts of ended requests, beside the claim"""
    load_in_memory: bool = False
    """read the file instead of mapping it"""
    chat_template: str | None = None
    """instead of the file's own"""
    embeddings: bool | None = None
    """answer Embed instead of Submit; by default so for encoders"""
    pooling: Literal["none", "mean", "cls", "last", "rank"] | None = None
    """how token vectors become one; the file's own when absent"""

    @classmethod
    def of(cls, launch: Launch) -> Self:
        """The launch's settings. Raises LoadFailed for a wrong one, with what would be right."""
        try:
            return cls.model_validate(launch.engine_args)
        except ValidationError as error:
            raise LoadFailed(
                f"the llama.cpp settings are wrong: {first_fault(error)} (it has {', '.join(cls.model_fields)})",
                permanent=True,
            ) from None
