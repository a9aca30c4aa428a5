"""vLLM's arguments that are objects: what each may hold, by vLLM's own names.

Only names that stand here are handed on. vLLM would take many more, among them modules, classes and paths that code is
loaded from: a backend or a pass of the compiler by its qualified name, `auto_map`, `cache_dir`.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # pydantic wants it before Python 3.12

Count = Annotated[int, Field(ge=0, le=1 << 40)]
Some = Annotated[int, Field(ge=1, le=1 << 40)]
Word = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")]
ClassName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,80}$")]
"""Of vLLM's own registry of models: remote code is never trusted."""
Op = Annotated[str, Field(pattern=r"^(all|none|[+-][a-z0-9_]{1,60})$")]
Factors = Annotated[list[float], Field(max_length=512)]


class Closed(TypedDict, total=False):
    """An object that takes no name but those that its class gives."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # pyright: ignore


class RopeParameters(Closed, total=False):
    """How positions are turned into angles."""

    rope_type: Word
    rope_theta: float
    factor: float
    original_max_position_embeddings: Some
    partial_rotary_factor: float
    attention_factor: float
    beta_fast: float
    beta_slow: float
    mscale: float
    mscale_all_dim: float
    low_freq_factor: float
    high_freq_factor: float
    short_factor: Factors
    long_factor: Factors
    mrope_section: Annotated[list[Some], Field(max_length=8)]


class TextOverrides(Closed, total=False):
    """What of a model's config.json doesn't change its claim."""

    max_position_embeddings: Some
    rope_parameters: RopeParameters
    rope_scaling: RopeParameters
    rope_theta: float
    sliding_window: Some
    num_experts_per_tok: Some


class HfOverrides(TextOverrides, total=False):
    """The same of the whole, and what a model is used for."""

    architectures: Annotated[list[ClassName], Field(min_length=1, max_length=4)]
    classifier_from_token: Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=8)]
    is_original_qwen3_reranker: bool
    num_labels: Some
    is_matryoshka: bool
    matryoshka_dimensions: Annotated[list[Some], Field(max_length=64)]
    text_config: TextOverrides


class GenerationConfig(Closed, total=False):
    """Sampling where a request says nothing; `OWN` of vllm_sampling."""

    temperature: Annotated[float, Field(ge=0, le=2)]
    top_p: Annotated[float, Field(gt=0, le=1)]
    top_k: Annotated[int, Field(ge=-1)]
    min_p: Annotated[float, Field(ge=0, le=1)]
    repetition_penalty: Annotated[float, Field(gt=0, le=10)]


class PassConfig(Closed, total=False):
    """Passes of the compiler, on or off."""

    fuse_norm_quant: bool
    fuse_act_quant: bool
    fuse_attn_quant: bool
    fuse_allreduce_rms: bool
    eliminate_noops: bool


class CompilationConfig(Closed, total=False):
    """What is compiled and captured."""

    mode: Annotated[int, Field(ge=0, le=3)]
    backend: Literal["eager", "inductor"]
    cudagraph_mode: Literal["NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"]
    cudagraph_capture_sizes: Annotated[list[Some], Field(max_length=512)]
    max_cudagraph_capture_size: Count
    compile_sizes: Annotated[list[Some], Field(max_length=64)]
    custom_ops: Annotated[list[Op], Field(max_length=64)]
    use_inductor_graph_partition: bool
    pass_config: PassConfig


class PoolerConfig(Closed, total=False):
    """How token vectors become one vector or one score."""

    pooling_type: Literal["CLS", "LAST", "MEAN"]
    use_activation: bool
    dimensions: Some
    logit_mean: float
    logit_sigma: Annotated[float, Field(gt=0)]


Modalities = dict[Literal["image", "video", "audio"], Annotated[int, Field(ge=0, le=1024)]]
"""How many of each one prompt may have: 0 spares the memory for them."""
