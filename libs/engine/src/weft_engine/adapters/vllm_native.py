"""The one place that touches `vllm`, which is installed in its backend's environment alone: its parts, with types.

But for its parsers of answers: `vllm_parsers.py`.
"""

import importlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Logprob(Protocol):
    """What vLLM says of one token that it drew or might have drawn."""

    logprob: float
    rank: int | None


class Completion(Protocol):
    """What is new of one answer."""

    token_ids: Sequence[int]
    logprobs: Sequence[Mapping[int, Logprob]] | None
    finish_reason: str | None


class RequestOutput(Protocol):
    """What a step made for one request."""

    outputs: Sequence[Completion]
    num_cached_tokens: int | None


class PoolingOutput(Protocol):
    """What a pooling model made of one input."""

    outputs: Any
    prompt_token_ids: Sequence[int]


class Tokenizer(Protocol):
    """What is used of a tokenizer of transformers."""

    chat_template: str | None
    all_special_ids: list[int]

    def encode(self, text: str) -> list[int]: ...

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> list[int]: ...

    def decode(self, token_ids: Sequence[int], **options: Any) -> str: ...

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str | None]: ...


class SchedulerStats(Protocol):
    """vLLM's figures after a step."""

    kv_cache_usage: float


class ModelConfig(Protocol):
    """What vLLM makes of a model's own files."""

    max_model_len: int
    runner_type: str
    """`generate` or `pooling`"""
    dtype: Any
    hf_config: Any
    hf_text_config: Any

    def get_vocab_size(self) -> int: ...

    def get_head_size(self) -> int: ...

    def get_total_num_kv_heads(self) -> int: ...

    def get_diff_sampling_param(self) -> dict[str, Any]: ...


class PairPrompts:
    """Makes a cross-encoder's input of a query and a text, by vLLM's own way for that model."""

    def __init__(self, engine: Any) -> None:
        scoring, chat, utils = (
            importlib.import_module(f"vllm.{name}")
            for name in (
                "entrypoints.pooling.scoring.io_processor",
                "renderers.chat_utils",
                "entrypoints.pooling.scoring.utils",
            )
        )
        way: Any = scoring.CrossEncoderIOProcessor
        self._way: Any = way(engine.vllm_config, engine.renderer, chat.ChatTemplateConfig())
        self._place_of_ones: Any = utils.compress_token_type_ids

    def of(self, query: str, text: str) -> tuple[list[int], int | None]:
        """Ids, and where the text's begin, for models that are told; blocks."""
        _, made = self._way.get_score_prompt(query, text, {})
        kinds: list[int] | None = made.get("token_type_ids")
        return list(made["prompt_token_ids"]), None if kinds is None else int(self._place_of_ones(kinds))


OnStep = Callable[[SchedulerStats | None], None]
"""Hears of each step of the engine."""


@dataclass(frozen=True, slots=True)
class Faults:
    """vLLM's exceptions, told apart."""

    dead: type[Exception]
    """its engine core is gone"""
    client: type[Exception]
    """the request is at fault"""


class NativeEngine:
    """A started `AsyncLLM`. Used on the event loop's thread, but for `close`."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        sampling, inputs, pooling = (
            importlib.import_module(f"vllm.{name}") for name in ("sampling_params", "inputs.engine", "pooling_params")
        )
        self._sampling_params: Any = sampling.SamplingParams
        self._structured: Any = sampling.StructuredOutputsParams
        self._delta: Any = sampling.RequestOutputKind.DELTA
        self._tokens_input: Any = inputs.tokens_input
        self._pooling_params: Any = pooling.PoolingParams
        exceptions: Any = importlib.import_module("vllm.exceptions")
        dead: Any = importlib.import_module("vllm.v1.engine.exceptions")
        self.faults = Faults(dead.EngineDeadError, exceptions.VLLMClientError)
        self.tokenizer: Tokenizer = engine.get_tokenizer()
        self.model: ModelConfig = engine.model_config

    @property
    def dead(self) -> bool:
        """Whether its engine core is gone."""
        return bool(self._engine.errored)

    def generate(
        self,
        ids: list[int],
        sampling: Mapping[str, Any],
        grammar: str,
        request_id: str,
        *,
        thinks: bool = False,
        variables: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[RequestOutput, None]:
        """What each step makes of a prompt. Text is not vLLM's business: ids come alone. Raises `faults`.

        `thinks`: the answer may begin with thoughts, which the grammar leaves alone; `variables`: the template's.
        """
        params = self._sampling_params(
            **sampling,
            detokenize=False,
            output_kind=self._delta,
            structured_outputs=self._structured(grammar=grammar) if grammar else None,
        )
        parser = {"chat_template_kwargs": dict(variables or {})} if thinks else None
        return self._engine.generate(
            self._tokens_input(ids),
            params,
            request_id,
            reasoning_ended=not thinks,
            reasoning_parser_kwargs=parser,
        )

    async def pool(self, ids: list[int], task: str, request_id: str, **options: Any) -> PoolingOutput:
        """What a pooling model makes of one input. Raises `faults`."""
        params = self._pooling_params(task=task, **options)
        outputs: list[PoolingOutput] = [
            output async for output in self._engine.encode(self._tokens_input(ids), params, request_id)
        ]
        return outputs[-1]

    def pair_prompts(self) -> PairPrompts:
        """For a cross-encoder. Raises what vLLM raises."""
        return PairPrompts(self._engine)

    @property
    def labels(self) -> int:
        """How many figures a classifier gives."""
        return int(getattr(self.model.hf_config, "num_labels", 0))

    async def tasks(self) -> tuple[str, ...]:
        """What the model can be asked for, by vLLM's names."""
        return tuple(await self._engine.get_supported_tasks())

    def close(self, within_s: float) -> None:
        """End its processes; blocks."""
        self._engine.shutdown(timeout=within_s)


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


def start(arguments: Mapping[str, Any], on_step: OnStep) -> NativeEngine:
    """Start vLLM's processes and load the model; blocks. `on_step` hears of every engine step, on the loop's thread.

    Raises what vLLM raises.
    """
    loggers: Any = importlib.import_module("vllm.v1.metrics.loggers")

    class Steps(loggers.StatLoggerBase):
        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None: ...

        def record(self, scheduler_stats: SchedulerStats | None, *others: Any, **named: Any) -> None:
            on_step(scheduler_stats)

        def log_engine_initialized(self) -> None: ...

    async_llm: Any = importlib.import_module("vllm.v1.engine.async_llm")
    return NativeEngine(async_llm.AsyncLLM.from_engine_args(_engine_args(arguments), stat_loggers=[Steps]))


def decode_stream(tokenizer: Tokenizer, ids: list[int], *, marks: bool = False) -> "Callable[[int], str | None] | None":
    """Text token by token after these ids, by the tokenizer's own fast way; None: it has none.

    `marks`: tokens that only mark are text, too.

    What it answers is whole characters; None: more ids are needed, or the id has no text.
    """
    fast: Any = getattr(tokenizer, "_tokenizer", None)
    decoders: Any = importlib.import_module("tokenizers.decoders")
    if fast is None:
        return None
    stream: Any = decoders.DecodeStream(ids=ids, skip_special_tokens=not marks)
    return lambda token_id: stream.step(fast, token_id)


def _engine_args(arguments: Mapping[str, Any]) -> Any:
    args: Any = importlib.import_module("vllm.engine.arg_utils")
    return args.AsyncEngineArgs(**arguments)
