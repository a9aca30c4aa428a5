"""An engine that is made of functions: a thread for each answer, a bound for all of them."""

import asyncio
from collections.abc import Callable, Sequence
from math import isfinite
from typing import TypeVar

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, EngineFacts, EngineLoad, RequestRefused, Ticket, packed

from weft_engine.functions.abilities import Functions
from weft_engine.functions.question import question_of, words_of
from weft_engine.functions.written_answer import WrittenAnswer
from weft_engine.launch import Launch
from weft_engine.native_calls import on_own_thread
from weft_engine.unhonoured import refuse_unhonoured
from weft_engine.waiting_line import CallLine, RequestLine

T = TypeVar("T")


class FunctionEngine:
    """Runs at most `concurrency` functions at once; the rest waits here, where a cancel needs none."""

    def __init__(self, launch: Launch, functions: Functions, version: str) -> None:
        self._functions = functions
        self._facts = EngineFacts(
            launch.engine, version, launch.context_tokens, launch.concurrency, canary=functions.canary
        )
        self._line: RequestLine[WrittenAnswer] = RequestLine(launch.concurrency, launch.max_waiting, self._start)
        self._calls = CallLine(launch.concurrency, launch.max_waiting)
        """For embedding and reranking."""
        self._steps = 0

    @property
    def facts(self) -> EngineFacts:
        return self._facts

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        if self._functions.write is None:
            raise self._cannot("writes no text")
        refuse_unhonoured(request, self._facts.name, self._functions.honours)
        if request.resume.output_ids or request.resume.text_sent:
            raise self._cannot("can't go on where another replica stopped", "resume")
        known = self._functions.count(words_of(prompt))
        room = self._facts.context_tokens - known
        if room < 1:
            sentence = f"the prompt has {known} tokens, the context holds {self._facts.context_tokens} with the answer"
            raise RequestRefused(pb.FAULT_CONTEXT_EXCEEDED, sentence)
        self._line.refuse_full()
        question = question_of(request, prompt, min(request.max_tokens or room, room))
        self._line.enter(ticket, WrittenAnswer(question, request.stop, ticket, known))

    def cancel(self, ticket: Ticket) -> None:
        if (answer := self._line.cancel(ticket)) is not None:
            answer.cancel()

    def load(self) -> EngineLoad:
        steps = self._steps + sum(answer.steps for answer in self._line.started.values())
        running, waiting = self._line.running + self._calls.running, self._line.waiting + self._calls.waiting
        return EngineLoad(running, waiting, 0.0, steps)

    async def count(self, prompt: pb.Prompt) -> int:
        return self._functions.count(words_of(prompt))

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        embed = self._functions.embed
        if embed is None:
            raise self._cannot("makes no embeddings")
        texts = [each for each in inputs if isinstance(each, str)]
        if len(texts) < len(inputs):
            raise self._cannot("has no tokenizer: give texts, not token ids", "input")
        tokens = [self._functions.count(text) for text in texts]
        if max(tokens) > self._facts.context_tokens:
            sentence = f"an input has {max(tokens)} tokens, this model takes at most {self._facts.context_tokens}"
            raise RequestRefused(pb.FAULT_CONTEXT_EXCEEDED, sentence)
        vectors = await self._called(lambda: [[float(each) for each in vector] for vector in embed(texts)], "embed")
        lengths = {len(vector) for vector in vectors}
        if len(vectors) != len(texts) or len(lengths) != 1 or 0 in lengths:
            raise self._failed(f"{len(vectors)} vectors of lengths {sorted(lengths)} for {len(texts)} texts")
        if not all(isfinite(each) for vector in vectors for each in vector):
            raise self._failed("a vector holds what is no finite number")
        return Embeddings([packed(vector) for vector in vectors], sum(tokens))

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        rerank = self._functions.rerank
        if rerank is None:
            raise self._cannot("does not rerank")
        scores: Sequence[float] = await self._called(lambda: [float(each) for each in rerank(query, texts)], "rerank")
        if len(scores) != len(texts) or not all(map(isfinite, scores)):
            raise self._failed(f"{len(scores)} scores for {len(texts)} texts, or one that is no finite number")
        return pb.Scores(scores=scores, prompt_tokens=sum(map(self._functions.count, (query, *texts))))

    async def close(self) -> None:
        self._line.clear_waiting()
        for answer in list(self._line.started.values()):
            answer.cancel()
        if self._functions.close is not None:
            await on_own_thread(self._functions.close, "functions-close")

    def _start(self, answer: WrittenAnswer) -> None:
        assert self._functions.write is not None  # else nothing is submitted
        answer.start(self._functions.write, self._done)

    def _done(self, answer: WrittenAnswer) -> None:
        self._steps += answer.steps + 1
        self._line.leave(answer.ticket)

    async def _called(self, call: Callable[[], T], what: str) -> T:
        """Run a call on a thread. It keeps its place until it has ended, also when nobody waits any more."""
        turn = await self._calls.turn()

        def over(running: "asyncio.Future[T]") -> None:
            self._calls.leave(turn)
            self._steps += 1
            if not running.cancelled():
                running.exception()  # seen, though nobody may wait for it

        running = asyncio.ensure_future(on_own_thread(call, f"functions-{what}"))
        running.add_done_callback(over)
        return await asyncio.shield(running)

    def _cannot(self, what: str, field: str = "") -> RequestRefused:
        return RequestRefused(pb.FAULT_BAD_REQUEST, f"the {self._facts.name} engine {what}", field)

    def _failed(self, what: str) -> RequestRefused:
        return RequestRefused(pb.FAULT_ENGINE, f"the {self._facts.name} engine failed: it answered with {what}")
