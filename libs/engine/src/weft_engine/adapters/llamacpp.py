"""llama.cpp as an engine: a thread for each running request, one wake of the loop for each step."""

import threading
from collections.abc import Iterable, Sequence
from queue import SimpleQueue
from typing import Self

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, Ending, EngineFacts, EngineLoad, RequestRefused, Ticket
from weft_dataplane.ticket import Scores

from weft_engine.adapters.llamacpp_job import Job
from weft_engine.adapters.llamacpp_loading import load_server
from weft_engine.adapters.llamacpp_native import NativeServer, version
from weft_engine.adapters.llamacpp_step_batcher import StepBatcher
from weft_engine.adapters.llamacpp_tokenizer import LlamaCppTokenizer
from weft_engine.adapters.llamacpp_vectors import LlamaCppEmbedder, rerank_texts
from weft_engine.launch import Launch
from weft_engine.native_calls import on_own_thread
from weft_engine.waiting_line import CallLine, RequestLine

StepOutput = tuple[Job, str, Sequence[int], Scores, Ending | None]
"""A request, its text with ids and scores, and how it ended, if it did."""


class LlamaCpp:
    """Runs at most `concurrency` completions; the rest waits here, where a cancel needs no step."""

    def __init__(self, launch: Launch, server: NativeServer, *, embeddings: bool, vocabulary: int = 0) -> None:
        self._server = server
        self._tokenizer = LlamaCppTokenizer(server.address, server.key)
        self._embeddings = embeddings
        self._embedder = LlamaCppEmbedder(server, vocabulary)
        self._vocabulary = vocabulary
        self._facts = EngineFacts("llama.cpp", version(), self._tokenizer.context_tokens, launch.concurrency)
        self._line: RequestLine[Job] = RequestLine(launch.concurrency, launch.max_waiting, self._dispatch)
        self._calls = CallLine(launch.concurrency, launch.max_waiting)
        self._threads = 0
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._step_batcher: StepBatcher[StepOutput] = StepBatcher(self._hand_over)
        self._steps = 0

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Check the file, load it. Raises LoadFailed with the reason."""
        loaded = await on_own_thread(lambda: load_server(launch), "llamacpp-load")
        return cls(launch, loaded.server, embeddings=loaded.embeddings, vocabulary=loaded.vocabulary)

    @property
    def facts(self) -> EngineFacts:
        return self._facts

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        if self._embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model makes embeddings, it does not write")
        if request.template_kwargs:
            sentence = "the llama.cpp engine can't honour `chat_template_kwargs`"
            raise RequestRefused(pb.FAULT_BAD_REQUEST, sentence, "template_kwargs")
        for bias in request.bias:
            if self._vocabulary and bias.id >= self._vocabulary:
                raise RequestRefused(
                    pb.FAULT_BAD_REQUEST,
                    f"`logit_bias` names token {bias.id}; the model's tokens are 0 to {self._vocabulary - 1}",
                    "bias",
                )
        self._line.enter(ticket, Job(request, prompt, ticket))

    def cancel(self, ticket: Ticket) -> None:
        if (job := self._line.cancel(ticket)) is not None:
            job.cancel()

    def load(self) -> EngineLoad:
        held = sum(job.prompt_tokens + job.made for job in self._line.started.values())
        room = self._facts.concurrency * self._facts.context_tokens
        running, waiting = self._line.running + self._calls.running, self._line.waiting + self._calls.waiting
        return EngineLoad(running, waiting, min(1.0, held / room), self._steps + self._embedder.steps)

    async def count(self, prompt: pb.Prompt) -> int:
        return await on_own_thread(lambda: self._tokenizer.count(prompt), "llamacpp-count")

    async def prompt_ids(self, prompt: pb.Prompt) -> list[int]:
        return await on_own_thread(lambda: self._tokenizer.prompt_ids(prompt), "llamacpp-count")

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        if not self._embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model writes, it makes no embeddings")
        async with self._calls.place():
            return await self._embedder.embed(inputs)

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        if not self._embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model writes, it does not rerank")
        async with self._calls.place():
            return await on_own_thread(lambda: rerank_texts(self._server, query, texts), "llamacpp-rerank")

    async def close(self) -> None:
        self._line.clear_waiting()
        for job in self._line.started.values():
            job.cancel()
        for _ in range(self._threads):
            self._jobs.put(None)
        self._tokenizer.close()
        await on_own_thread(self._server.close, "llamacpp-close")

    def _dispatch(self, job: Job) -> None:
        self._step_batcher.join(job.thread)
        if self._threads < self._line.running:
            self._threads += 1
            threading.Thread(target=self._work, name=f"llamacpp-{self._threads}", daemon=True).start()
        self._jobs.put(job)

    def _work(self) -> None:
        """A thread's life: one job after another."""
        while (job := self._jobs.get()) is not None:
            ending = job.run(self._server, self._tokenizer, self._put)
            self._step_batcher.end(job.thread, (job, "", (), (), ending))

    def _put(self, job: Job, text: str, ids: Sequence[int], scores: Scores, made: int, ends: bool) -> None:
        output = (job, text, ids, scores, None) if text else None
        self._step_batcher.put(job.thread, output, tokens=made, ends=ends)

    def _hand_over(self, outputs: Iterable[StepOutput]) -> None:
        """One step's outputs go to the tickets; sessions send them when this turn of the loop is over."""
        self._steps += 1
        for job, text, ids, scores, ending in outputs:
            if text:
                job.ticket.emit(text, ids, scores)
            if ending is not None:
                self._step_batcher.leave(job.thread)
                job.ticket.finish(ending)
                self._line.leave(job.ticket)
