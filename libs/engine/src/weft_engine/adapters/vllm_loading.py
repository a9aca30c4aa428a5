"""Starts vLLM for a launch, within its claim, or says in one sentence why not."""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from pydantic import ValidationError
from weft_contracts.engines import HeaderClaim
from weft_dataplane import LoadFailed

from weft_engine.adapters import vllm_starting
from weft_engine.adapters.vllm_lora import Lora, lora_of
from weft_engine.adapters.vllm_memory import Blocks, NoRoom, kv_cache_bytes
from weft_engine.adapters.vllm_native import ModelConfig, NativeEngine
from weft_engine.adapters.vllm_parsers import Parsers, check_names, parsers_of
from weft_engine.adapters.vllm_settings import VllmSettings
from weft_engine.installed import profile_of
from weft_engine.launch import Launch, first_fault
from weft_engine.vllm_child import bind_children

CLOSE_S: Final = 3.0
BLOCK: Final = 16
"""Tokens of a block on an accelerator, where nothing else is said."""
BLOCK_ON_PROCESSOR: Final = 128
STRUCTURED: Final = {"backend": "guidance"}
"""llguidance takes our grammars of both kinds; vLLM's others take one, or none."""

log = logging.getLogger("weft.engine")


class Plan(NamedTuple):
    """How vLLM is to be started."""

    arguments: dict[str, Any]
    embeddings: bool
    """it answers Embed and Rerank instead of Submit"""
    lora: Lora | None = None


class StartedVllm(NamedTuple):
    """A started vLLM and what it is for."""

    engine: NativeEngine
    embeddings: bool
    parsers: Parsers | None
    """of the model family's answers, where the spec names such"""


def load_engine(launch: Launch, on_step: vllm_starting.OnStep) -> StartedVllm:
    """Check settings and files, then load; blocks. Raises LoadFailed.

    The thread that calls it must live as long as the engine: the kernel ends vLLM's processes with it.
    """
    settings = VllmSettings.of(launch)
    folder = checked_folder(launch)
    for name, value in environment(launch).items():
        os.environ.setdefault(name, value)
    bind_children()
    try:
        check_names(settings)
        plan = plan_for(launch, settings, folder)
        log.info("starts vLLM", extra={"arguments": plan.arguments})
        engine = vllm_starting.start(plan.arguments, on_step, plan.lora)
        try:
            return StartedVllm(engine, plan.embeddings, None if plan.embeddings else parsers_of(settings, engine))
        except LoadFailed:
            engine.close(CLOSE_S)
            raise
    except LoadFailed:
        raise
    except ImportError as error:
        raise LoadFailed(f"vLLM is not installed in this environment: {error}", permanent=True) from None
    except ValidationError as error:
        raise LoadFailed(f"vLLM does not take {folder.name}: {first_fault(error)}", permanent=True) from None
    except (ValueError, NotImplementedError) as error:
        raise LoadFailed(f"vLLM does not take {folder.name}: {error}", permanent=True) from None
    except Exception as error:
        raise LoadFailed(f"vLLM could not load {folder.name}: {error} (its log says more)", permanent=False) from error


def checked_folder(launch: Launch) -> Path:
    """The model's folder. Raises LoadFailed."""
    if launch.model_path is None:
        raise LoadFailed("vLLM needs a model_path: a folder with safetensors files", permanent=True)
    folder = Path(launch.model_path)
    if not folder.is_dir():
        how = "is no folder" if folder.exists() else "does not exist"
        raise LoadFailed(f"the model {folder} {how}; vLLM loads a folder with safetensors files", permanent=True)
    return folder


def environment(launch: Launch) -> dict[str, str]:
    """What vLLM and what it stands on read of the environment; what an operator set there stays."""
    return {
        "DO_NOT_TRACK": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",  # the files lie here
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_HOST_IP": "127.0.0.1",  # its processes speak to one another alone
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",
        "VLLM_LOGGING_LEVEL": launch.log_level.upper(),
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # by itself it takes all cores of a NUMA node, and binds to them
        "OMP_NUM_THREADS": str(launch.threads),
        **({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}),
        # else the first log probabilities on a processor wait 15 s for a C++ compiler, and end the engine without one
        **({"TORCHDYNAMO_DISABLE": "1"} if VllmSettings.of(launch).enforce_eager else {}),
    }


def plan_for(launch: Launch, settings: VllmSettings, folder: Path) -> Plan:
    """vLLM's arguments for a launch. Raises LoadFailed, and what vLLM raises."""
    on_processor = vllm_starting.on_processor()
    accelerators = [device for device in launch.devices if device.vendor != "cpu"]
    if accelerators and on_processor:
        raise LoadFailed(
            f"the replica claims {accelerators[0].vendor} devices, and the vLLM that is installed here computes on "
            "the processor",
            permanent=True,
        )
    arguments: dict[str, Any] = {
        "model": str(folder),
        "served_model_name": launch.replica,
        "trust_remote_code": False,
        "disable_log_stats": True,  # those that go to Prometheus and the log; steps are counted all the same
        # with the parser, so that a grammar leaves thoughts alone
        "structured_outputs_config": {**STRUCTURED, "reasoning_parser": settings.reasoning_parser or ""},
        **settings.handed_on,
    }
    lora = lora_of(launch)
    if lora is not None:
        arguments |= lora.arguments
    if settings.embeddings:
        arguments["runner"] = "pooling"
    if on_processor and settings.dtype is None and stored_dtype(folder) in ("", "float32"):
        arguments["dtype"] = "float32"
    if accelerators:
        arguments.setdefault("tensor_parallel_size", len(accelerators))
        if arguments["tensor_parallel_size"] != len(accelerators):
            raise LoadFailed(
                f"tensor_parallel_size is {arguments['tensor_parallel_size']}, and the replica claims "
                f"{len(accelerators)} devices",
                permanent=True,
            )
    model = vllm_starting.model_config(arguments)
    context_tokens = min(launch.context_tokens, model.max_model_len)
    arguments |= {"max_model_len": context_tokens, "max_num_seqs": launch.concurrency}
    if settings.gpu_memory_utilization is None or on_processor:
        arguments["kv_cache_memory_bytes"] = kv_room(launch, settings, folder, model, context_tokens, on_processor)
    return Plan(arguments, embeddings=model.runner_type == "pooling", lora=lora)


def kv_room(
    launch: Launch, settings: VllmSettings, folder: Path, model: ModelConfig, context_tokens: int, on_processor: bool
) -> int:
    """Bytes of KV cache on each device: out of the claim; without one, what the requests need. Raises LoadFailed."""
    value_bytes: int = model.dtype.itemsize
    if settings.kv_cache_dtype not in (None, "auto"):
        value_bytes = 1 if "8" in str(settings.kv_cache_dtype) else 2
    heads = max(1, model.get_total_num_kv_heads() // (settings.tensor_parallel_size or 1))
    layers = int(model.hf_text_config.num_hidden_layers)
    in_each = 1 if model.use_mla else 2 * heads  # vectors as long as a head: a latent one, or keys and values
    bytes_per_token = layers * in_each * model.get_head_size() * value_bytes
    blocks = Blocks(bytes_per_token, settings.block_size or (BLOCK_ON_PROCESSOR if on_processor else BLOCK))
    if not launch.devices:
        return blocks.for_requests(launch.concurrency, context_tokens)
    if model.is_hybrid or model.is_attention_free or model.get_sliding_window():
        context_tokens = 1  # what one request needs of such layers vLLM itself knows, and says where it is too little
    formula = profile_of(launch.engine).claim
    assert isinstance(formula, HeaderClaim)
    try:
        lora = lora_of(launch)
        weights = weight_bytes(folder, settings, model) + (lora.bytes if lora is not None else 0)
        return kv_cache_bytes(launch.devices, weights, formula, blocks, context_tokens)
    except NoRoom as full:
        raise LoadFailed(f"{full}, in {model.dtype}", permanent=True) from None


def weight_bytes(folder: Path, settings: VllmSettings, model: ModelConfig) -> int:
    """What the weights take in memory: their files, or more where they are computed in a wider type."""
    size = sum(part.stat().st_size for part in folder.glob("*.safetensors"))
    stored = {"float32": 4, "float16": 2, "bfloat16": 2}.get(stored_dtype(folder))
    if stored is None or settings.quantization is not None:
        return size
    return size * max(stored, int(model.dtype.itemsize)) // stored


def stored_dtype(folder: Path) -> str:
    """What the model's own configuration names as the type of its weights; empty: nothing."""
    try:
        config: Any = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise LoadFailed(f"the model's config.json can't be read: {error}", permanent=True) from None
    if not isinstance(config, dict):
        raise LoadFailed("the model's config.json holds no JSON object", permanent=True)
    fields = cast("dict[str, Any]", config)
    text: dict[str, Any] = fields.get("text_config") or fields
    named = text.get("dtype") or text.get("torch_dtype") or fields.get("dtype") or fields.get("torch_dtype")
    return str(named or "").removeprefix("torch.")
