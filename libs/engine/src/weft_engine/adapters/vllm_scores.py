"""Scores by vLLM's cross-encoders: a query and a text are one input, put together as vLLM's own server does it."""

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused

from weft_engine.adapters.vllm_native import NativeEngine, PairPrompts
from weft_engine.adapters.vllm_vectors import together
from weft_engine.native_calls import on_own_thread


class VllmReranker:
    """Answers `rerank`; vLLM itself queues and batches the pairs."""

    def __init__(self, engine: NativeEngine, context_tokens: int) -> None:
        self._engine = engine
        self._context_tokens = context_tokens
        self._pairs: PairPrompts | None = None
        self._asked = 0
        self.running = 0
        """`rerank`s that are being answered"""

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        """One score for each text, in order, as vLLM's own server gives it. Raises RequestRefused."""
        if not query or not texts:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "reranking needs a query and at least one text")
        pairs = await self._known_pairs()
        self.running += 1
        try:
            inputs = await on_own_thread(lambda: [pairs.of(query, text) for text in texts], "vllm-pairs")
            for place, (ids, _) in enumerate(inputs):
                if len(ids) > self._context_tokens:
                    raise RequestRefused(
                        pb.FAULT_CONTEXT_EXCEEDED,
                        f"the query and text {place} have {len(ids)} tokens together, this model takes at most "
                        f"{self._context_tokens}",
                    )
            scores = await together([self._score(ids, second) for ids, second in inputs])
        except self._engine.faults.client as error:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, f"vLLM refused the texts: {error}") from None
        finally:
            self.running -= 1
        return pb.Scores(scores=scores, prompt_tokens=sum(len(ids) for ids, _ in inputs))

    async def _known_pairs(self) -> PairPrompts:
        if self._pairs is None:
            if "classify" not in await self._engine.tasks() or self._engine.labels != 1:
                raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model does not rerank: it is no cross-encoder")
            self._pairs = self._engine.pair_prompts()
        return self._pairs

    async def _score(self, ids: list[int], second: int | None) -> float:
        self._asked += 1
        # without the place where the text begins a BERT takes all of the pair for the query, and scores otherwise
        extra = {} if second is None else {"extra_kwargs": {"compressed_token_type_ids": second}}
        output = await self._engine.pool(ids, "classify", f"s{self._asked}", **extra)
        numbers: list[float] = output.outputs.data.flatten().tolist()
        return numbers[0]
