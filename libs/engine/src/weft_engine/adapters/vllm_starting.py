"""Starts vLLM, and asks before what it makes of a model; with `vllm_native` and `vllm_parsers` all that touches it."""

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from weft_engine.adapters.vllm_lora import Lora
from weft_engine.adapters.vllm_native import ModelConfig, NativeEngine, SchedulerStats

OnStep = Callable[[SchedulerStats | None], None]
"""Hears of each step of the engine."""


def version() -> str:
    """vLLM's own."""
    native: Any = importlib.import_module("vllm")
    return str(native.__version__)


def on_processor() -> bool:
    """Whether the vLLM that is installed here computes on the processor."""
    platforms: Any = importlib.import_module("vllm.platforms")
    return bool(platforms.current_platform.is_cpu())


def model_config(arguments: Mapping[str, Any]) -> ModelConfig:
    """What vLLM makes of a model under these arguments, with nothing started. Raises what vLLM raises."""
    return _engine_args(arguments).create_model_config()


def configured(arguments: Mapping[str, Any]) -> Any:
    """vLLM's whole configuration, as it starts from. Raises what vLLM raises."""
    usage: Any = importlib.import_module("vllm.usage.usage_lib")
    config: Any = _engine_args(arguments).create_engine_config(usage.UsageContext.ENGINE_CONTEXT)
    unbound = os.environ.get("VLLM_CPU_OMP_THREADS_BIND") == "nobind"
    if on_processor() and unbound and config.parallel_config.world_size == 1:
        # vLLM would start one more process, only to bind its threads; OpenMP's variables are set here for all of them
        config.parallel_config.distributed_executor_backend = "uni"
    return config


def start(arguments: Mapping[str, Any], on_step: OnStep, lora: Lora | None = None) -> NativeEngine:
    """Start vLLM's processes and load the model, with an adapter for all that it answers; blocks.

    `on_step` hears of every engine step, on the loop's thread. Raises what vLLM raises.
    """
    loggers: Any = importlib.import_module("vllm.v1.metrics.loggers")

    class Steps(loggers.StatLoggerBase):
        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None: ...

        def record(self, scheduler_stats: SchedulerStats | None, *others: Any, **named: Any) -> None:
            on_step(scheduler_stats)

        def log_engine_initialized(self) -> None: ...

    async_llm: Any = importlib.import_module("vllm.v1.engine.async_llm")
    engine: Any = async_llm.AsyncLLM.from_vllm_config(
        configured(arguments), stat_loggers=[Steps], disable_log_stats=True
    )
    told: list[Any] = engine.logger_manager.stat_loggers  # vLLM adds one for Prometheus, which nobody asks here
    told[:] = [each for each in told if not isinstance(each, loggers.PrometheusStatLogger)]
    engine.log_stats = engine.output_processor.log_stats = False  # figures of each token of each request: nobody asks
    return NativeEngine(engine, lora)


def _engine_args(arguments: Mapping[str, Any]) -> Any:
    args: Any = importlib.import_module("vllm.engine.arg_utils")
    return args.AsyncEngineArgs(**arguments)
