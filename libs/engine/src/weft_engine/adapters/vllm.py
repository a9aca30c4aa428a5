"""vLLM as an engine: its scheduler runs and queues the requests, in processes of its own."""

import asyncio
from typing import Final, Self

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, EngineFacts, EngineLoad, RequestRefused, Ticket

from weft_engine.adapters.vllm_job import VllmJob
from weft_engine.adapters.vllm_loading import CLOSE_S, StartedVllm, load_engine
from weft_engine.adapters.vllm_native import SchedulerStats
from weft_engine.adapters.vllm_prompts import VllmPrompts
from weft_engine.adapters.vllm_scores import VllmReranker
from weft_engine.adapters.vllm_settings import VllmSettings
from weft_engine.adapters.vllm_starting import version
from weft_engine.adapters.vllm_text import TokenBytes
from weft_engine.adapters.vllm_vectors import VllmEmbedder
from weft_engine.launch import Launch
from weft_engine.native_calls import on_own_thread
from weft_engine.waiting_line import CallLine, RequestLine

LOOK_S: Final = 0.25
"""Between two looks at whether vLLM's processes live."""


class Steps:
    """Counts vLLM's engine steps and keeps the last one's figures."""

    def __init__(self) -> None:
        self.count = 0
        self.kv_used = 0.0

    def record(self, stats: SchedulerStats | None) -> None:
        """A step was made."""
        self.count += 1
        if stats is not None:
            self.kv_used = stats.kv_cache_usage


class Vllm:
    """Hands requests to vLLM, which batches `concurrency` of them and queues the others."""

    def __init__(self, launch: Launch, loaded: StartedVllm, steps: Steps) -> None:
        self._engine = engine = loaded.engine
        self._embeddings = loaded.embeddings
        self._steps = steps
        self._facts = EngineFacts("vllm", version(), engine.model.max_model_len, launch.concurrency)
        self._prompts = VllmPrompts(engine.tokenizer, engine.model.get_vocab_size(), VllmSettings.of(launch))
        self._bytes_of = TokenBytes(engine.tokenizer)
        self._parsers = loaded.parsers
        self._embedder = VllmEmbedder(engine, self._prompts, self._facts.context_tokens)
        self._reranker = VllmReranker(engine, self._facts.context_tokens)
        places, waiting = launch.concurrency, launch.max_waiting
        self._line: RequestLine[VllmJob] = RequestLine(places, waiting, self._start, engine_queues=True)
        self._calls = CallLine(places, waiting)
        self._submitted = 0

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Check the files, start vLLM's processes, load. Raises LoadFailed with the reason."""
        steps = Steps()
        loaded = await on_own_thread(lambda: load_engine(launch, steps.record), "vllm", stays=True)
        return cls(launch, loaded, steps)

    @property
    def facts(self) -> EngineFacts:
        return self._facts

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        if self._embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model makes embeddings, it does not write")
        self._line.enter(ticket, VllmJob(request, prompt, ticket))

    def cancel(self, ticket: Ticket) -> None:
        if (job := self._line.cancel(ticket)) is not None:
            job.cancel()

    def load(self) -> EngineLoad:
        running, waiting = self._line.running + self._calls.running, self._line.waiting + self._calls.waiting
        return EngineLoad(running, waiting, self._steps.kv_used if running else 0.0, self._steps.count)

    async def count(self, prompt: pb.Prompt) -> int:
        return len(await self._prompts.ids(prompt))

    async def prompt_ids(self, prompt: pb.Prompt) -> list[int]:
        return await self._prompts.ids(prompt)

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        if not self._embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model writes, it makes no embeddings")
        async with self._calls.place():
            return await self._embedder.embed(inputs)

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        if not self._embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model writes, it does not rerank")
        async with self._calls.place():
            return await self._reranker.rerank(query, texts)

    async def died(self) -> str:
        """Wait until vLLM's processes are gone, and say so in a sentence."""
        while not self._engine.dead:
            await asyncio.sleep(LOOK_S)
        return "vLLM's engine process ended; its last lines in the log say why"

    async def close(self) -> None:
        for job in list(self._line.started.values()):
            job.cancel()
        await on_own_thread(lambda: self._engine.close(CLOSE_S), "vllm-close")

    def _start(self, job: VllmJob) -> None:
        self._submitted += 1
        running = job.run(
            self._engine, self._prompts, self._bytes_of, self._parsers, self._facts.context_tokens, self._submitted
        )
        job.task = asyncio.create_task(running, name=f"vllm-{self._submitted}")
        job.task.add_done_callback(lambda _: self._line.leave(job.ticket))
