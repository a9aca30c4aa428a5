"""What vLLM can be told beyond the launch, by its own names."""

from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator
from weft_dataplane import LoadFailed

from weft_engine.adapters.vllm_objects import CompilationConfig, GenerationConfig, HfOverrides, Modalities, PoolerConfig
from weft_engine.launch import Launch, first_fault

OURS: Final = frozenset(
    {"chat_template", "default_chat_template_kwargs", "embeddings", "tool_call_parser", "reasoning_parser"}
)
"""Those that are not handed on as they are."""

RESERVED: Final = frozenset(
    {
        "add_generation_prompt",
        "chat_template",
        "continue_final_message",
        "conversation",
        "documents",
        "max_length",
        "messages",
        "padding",
        "return_assistant_tokens_mask",
        "return_dict",
        "return_tensors",
        "tokenize",
        "tokenizer_kwargs",
        "tools",
        "truncation",
    }
)
"""Arguments of the rendering itself, which are no variables of a template."""


class VllmSettings(BaseModel):
    """The `engine_args` of vLLM, once they are checked against its profile, which has their ranges.

    An absent one is vLLM's default. What the launch says has no name here: `max_num_seqs` is its concurrency and
    `max_model_len` its context; both come of the spec, since the claim is computed from them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpu_memory_utilization: float | None = None
    """share of each device, for weights and KV cache; instead of bytes out of the claim"""
    tensor_parallel_size: int | None = None
    """the claimed accelerators when absent"""
    dtype: str | None = None
    """of weights and activations; the model's own when absent, float32 on a processor where the model names none"""
    kv_cache_dtype: str | None = None
    quantization: str | None = None
    load_format: str | None = None
    enforce_eager: bool | None = None
    """neither compile nor capture graphs"""
    block_size: int | None = None
    """tokens in a block of the KV cache"""
    enable_prefix_caching: bool | None = None
    enable_chunked_prefill: bool | None = None
    max_num_batched_tokens: int | None = None
    """tokens computed in one step"""
    async_scheduling: bool | None = None
    disable_custom_all_reduce: bool | None = None
    max_logprobs: int | None = None
    """likeliest tokens that a request may ask for"""
    tokenizer_mode: str | None = None
    seed: int | None = None
    hf_overrides: HfOverrides | None = None
    """over the model's config.json"""
    override_generation_config: GenerationConfig | None = None
    """over the model's generation_config.json"""
    limit_mm_per_prompt: Modalities | None = None
    compilation_config: CompilationConfig | None = None
    pooler_config: PoolerConfig | None = None
    chat_template: str | None = None
    """instead of the tokenizer's own"""
    default_chat_template_kwargs: dict[str, JsonValue] | None = Field(default=None, max_length=64)
    """the template's variables where a request doesn't name them"""
    tool_call_parser: str | None = None
    """vLLM's parser of the family's calls of tools, by its name; Weft's own form when absent"""
    reasoning_parser: str | None = None
    """vLLM's parser of the family's thoughts, by its name; they are text when absent"""
    embeddings: bool | None = None
    """answer Embed instead of Submit; by default so for models that make no text"""

    @field_validator("default_chat_template_kwargs")
    @classmethod
    def _no_argument_of_the_rendering(cls, given: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        if given is not None and (taken := given.keys() & RESERVED):
            raise ValueError(f"{min(taken)} is what the engine gives the template itself")
        return given

    @classmethod
    def of(cls, launch: Launch) -> Self:
        """The launch's settings. Raises LoadFailed for an object that holds what it may not."""
        try:
            return cls.model_validate(launch.engine_args)
        except ValidationError as error:
            raise LoadFailed(f"the vllm settings are wrong: {first_fault(error)}", permanent=True) from None

    @property
    def handed_on(self) -> dict[str, Any]:
        """What vLLM is told as it was given."""
        return self.model_dump(exclude_none=True, exclude=set(OURS))
