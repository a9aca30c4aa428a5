"""What is used of a started `vllm`, which is installed in its backend's environment alone: its parts, with types.

Nothing else touches it but `vllm_starting.py` and, for its parsers of answers, `vllm_parsers.py`.
"""

import asyncio
import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from weft_engine.adapters.vllm_lora import Lora


class Logprob(Protocol):
    """What vLLM says of one token that it drew or might have drawn."""

    logprob: float
    rank: int | None


class Made(NamedTuple):
    """What a step made of one answer."""

    token_ids: Sequence[int]
    logprobs: Sequence[Mapping[int, Logprob]] | None
    """of each id, where the request asks for scores"""
    finish: str | None
    cached_tokens: int
    """of the prompt, which were found in the prefix cache"""


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
    is_hybrid: bool
    """Some of its layers carry a state"""
    is_attention_free: bool
    use_mla: bool
    """Its attention keeps one latent vector of a token, whatever its heads are"""

    def get_vocab_size(self) -> int: ...

    def get_head_size(self) -> int: ...

    def get_sliding_window(self) -> int | None: ...

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


@dataclass(frozen=True, slots=True)
class Faults:
    """vLLM's exceptions, told apart."""

    dead: type[Exception]
    """its engine core is gone"""
    client: type[Exception]
    """the request is at fault"""


class NativeEngine:
    """A started `AsyncLLM`. Used on the event loop's thread, but for `close`."""

    def __init__(self, engine: Any, lora: Lora | None = None) -> None:
        self._engine = engine
        self._lora: Any = None if lora is None else lora_request(lora)
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

    @functools.cached_property
    def own_sampling(self) -> Mapping[str, Any]:
        """The model's own, where a request says nothing; kept, since vLLM reads a file for it."""
        return self.model.get_diff_sampling_param()

    @property
    def dead(self) -> bool:
        """Whether its engine core is gone."""
        return bool(self._engine.errored)

    async def answer(
        self,
        ids: list[int],
        sampling: Mapping[str, Any],
        grammar: str,
        request_id: str,
        take: Callable[[Made], bool],
        *,
        thinks: bool = False,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        """Answer a prompt: `take` hears of what each step makes of it, as it is made, and says whether it is over.

        Text is not vLLM's business: ids come alone. `thinks`: the answer may begin with thoughts, which the grammar
        leaves alone; `variables`: the template's. Raises `faults`, and what `take` raises.
        """
        params = self._sampling_params(
            **sampling,
            detokenize=False,
            output_kind=self._delta,
            structured_outputs=self._structured(grammar=grammar) if grammar else None,
        )
        collector = await self._engine.add_request(
            request_id,
            self._tokens_input(ids),
            params,
            lora_request=self._lora,
            reasoning_ended=not thinks,
            reasoning_parser_kwargs={"chat_template_kwargs": dict(variables or {})} if thinks else None,
        )
        over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def hear(made: Made) -> None:
            if over.done():
                return
            try:
                if take(made) or made.finish is not None:
                    over.set_result(made.finish is not None)
            except Exception as error:
                over.set_exception(error)

        def put(output: Any) -> None:
            if not isinstance(output, Exception):
                part = output.outputs[0]
                hear(Made(part.token_ids, part.logprobs, part.finish_reason, output.num_cached_tokens or 0))
            elif not over.done():
                over.set_exception(output)

        ended = False
        try:
            if (early := collector.get_nowait()) is not None:
                put(early)
            # by itself vLLM wakes a task for every output of every request, which costs as much as all that is ours
            collector.put = put
            state = self._engine.output_processor.request_states.get(collector.request_id)
            if state is not None and state.stream_interval == 1:
                state.make_request_output = _spared(state, hear)
            ended = await over
        except self.faults.dead:
            ended = True
            raise
        finally:
            collector.close()
            if not ended:
                await self._engine.abort(collector.request_id, internal=True)

    async def pool(self, ids: list[int], task: str, request_id: str, **options: Any) -> PoolingOutput:
        """What a pooling model makes of one input. Raises `faults`."""
        params = self._pooling_params(task=task, **options)
        outputs: list[PoolingOutput] = [
            output
            async for output in self._engine.encode(
                self._tokens_input(ids), params, request_id, lora_request=self._lora
            )
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


def _spared(state: Any, hear: Callable[[Made], None]) -> Callable[..., None]:
    """In place of the two objects of 25 fields that vLLM makes of each token, of which four are used."""
    scores = state.logprobs_processor

    def made(token_ids: list[int], pooled: object, finish: object, *others: object, **named: object) -> None:
        logprobs: Any = scores.logprobs
        if logprobs is not None:
            logprobs = logprobs[len(logprobs) - len(token_ids) :]
        hear(Made(token_ids, logprobs, None if finish is None else str(finish), state.num_cached_tokens or 0))

    return made


def lora_request(lora: Lora) -> Any:
    """A LoRA adapter as vLLM's requests name it."""
    native: Any = importlib.import_module("vllm.lora.request")
    return native.LoRARequest(lora.name, 1, lora.path)


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
    return functools.partial(stream.step, fast)
