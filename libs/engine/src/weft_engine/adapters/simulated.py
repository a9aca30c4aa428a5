"""An engine that computes nothing and says so: deterministic tokens at a set speed, failures on demand.

Words in the last message that make it misbehave after three tokens: `[[fail]]` ends the request with an error,
`[[stall]]` stops all steps, `[[die]]` kills the process. `[[refuse]]` refuses the request at once.
"""

import asyncio
import os
import signal
from typing import Final, Self

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, Ending, EngineFacts, EngineLoad, RequestRefused, Ticket

from weft_engine.adapters.prefix_cache import PrefixCache
from weft_engine.adapters.simulated_settings import SimulatedSettings
from weft_engine.adapters.simulated_text import SimulatedAnswer, last_words, prompt_ids, text_of
from weft_engine.adapters.simulated_vectors import SimulatedEmbedder
from weft_engine.launch import Launch
from weft_engine.stop_strings import StopScanner
from weft_engine.unhonoured import refuse_unhonoured
from weft_engine.waiting_line import RequestLine

VERSION: Final = "1"
TROUBLE_AFTER: Final = 3
"""tokens before a troublesome prompt misbehaves"""


class SimulatedRequest:
    """A request that runs or waits."""

    def __init__(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket, context_tokens: int) -> None:
        self.ticket = ticket
        self.prompt = prompt_ids(prompt)
        self.words = last_words(prompt)
        sampling = request.sampling
        greedy = sampling.HasField("temperature") and sampling.temperature == 0
        self.answer = SimulatedAnswer(self.prompt, 0 if greedy else sampling.seed)
        self.resumed = list(request.resume.output_ids)
        self.made: list[int] = []
        self.stops: StopScanner[int] = StopScanner(request.stop)
        self.cached = 0
        self.to_prefill = 0
        room = context_tokens - len(self.prompt) - len(self.resumed)
        if room < 1:
            raise RequestRefused(
                pb.FAULT_CONTEXT_EXCEEDED,
                f"the prompt has {len(self.prompt) + len(self.resumed)} tokens, "
                f"the context holds {context_tokens} with the answer",
            )
        self.budget = min(request.max_tokens or room, room)
        self.end = None if sampling.ignore_end else self.answer.length

    @property
    def position(self) -> int:
        """Tokens of the answer so far, here and where it ran before."""
        return len(self.resumed) + len(self.made)

    def ending(self, finish: pb.Finish.ValueType, *, error: str = "") -> Ending:
        """The end with its usage."""
        fault = pb.FAULT_ENGINE if error else pb.FAULT_UNSPECIFIED
        return Ending(finish, len(self.prompt), len(self.made), self.cached, fault, error)


class Simulated:
    """One step loop for all requests."""

    def __init__(self, launch: Launch, settings: SimulatedSettings) -> None:
        self._settings = settings
        self._embedder = SimulatedEmbedder(settings, launch.context_tokens)
        self._facts = EngineFacts(
            "simulated", VERSION, launch.context_tokens, settings.concurrency or launch.concurrency
        )
        self._cache = PrefixCache(settings.block_tokens, settings.cache_blocks)
        self._line: RequestLine[SimulatedRequest] = RequestLine(
            self._facts.concurrency, launch.max_waiting, self._admit
        )
        self._steps = 0
        self._tokens = 0
        self._stalled = False
        self._work = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="simulated-steps")

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Load as told. Raises LoadFailed for wrong settings and when told to fail."""
        settings = SimulatedSettings.of(launch)
        await settings.pretend_to_load()
        return cls(launch, settings)

    @property
    def facts(self) -> EngineFacts:
        return self._facts

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        if self._settings.embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model makes embeddings, it does not write")
        refuse_unhonoured(request, "simulated")
        running = SimulatedRequest(request, prompt, ticket, self._facts.context_tokens)
        if "[[refuse]]" in running.words:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "the prompt asked to be refused", "prompt")
        self._line.enter(ticket, running)
        self._work.set()

    def cancel(self, ticket: Ticket) -> None:
        if (running := self._line.cancel(ticket)) is not None:
            ticket.finish(running.ending(pb.FINISH_CANCELLED))
            self._line.leave(ticket)

    def load(self) -> EngineLoad:
        held = sum(len(r.prompt) + r.position for r in self._line.started.values())
        room = self._facts.concurrency * self._facts.context_tokens
        embedder = self._embedder
        running, steps = self._line.running + embedder.running, self._steps + embedder.steps
        return EngineLoad(running, self._line.waiting, min(1.0, held / room), steps)

    async def count(self, prompt: pb.Prompt) -> int:
        return len(prompt_ids(prompt))

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        return await self._embedder.embed(inputs)

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "the simulated engine does not rerank")

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        step_s = self._settings.ms_per_token / 1000
        due = loop.time()
        while True:
            if self._stalled or not self._line.started:
                self._work.clear()
                await self._work.wait()
                due = loop.time()
                continue
            due = max(due + step_s, loop.time())
            await asyncio.sleep(due - loop.time())
            self._step(step_s)

    def _step(self, step_s: float) -> None:
        """One engine step: prefill within the step's share, one token for each that is ready."""
        share = self._settings.prefill_tokens_per_s * step_s
        left = int(share) or 1 if self._settings.prefill_tokens_per_s else None
        for running in list(self._line.started.values()):
            if running.to_prefill:
                done = running.to_prefill if left is None else min(left, running.to_prefill)
                running.to_prefill -= done
                left = None if left is None else left - done
                if running.to_prefill:
                    continue
                self._cache.remember(running.prompt)
            self._token(running)
            if self._stalled:
                return
        self._steps += 1

    def _admit(self, running: SimulatedRequest) -> None:
        known = running.prompt + running.resumed
        running.cached = min(self._cache.match(known), len(running.prompt) - 1) if running.prompt else 0
        running.to_prefill = len(known) - running.cached

    def _token(self, running: SimulatedRequest) -> None:
        self._misbehave(running)
        if self._stalled:
            return
        if "[[fail]]" in running.words and len(running.made) >= TROUBLE_AFTER:
            self._end(running, pb.FINISH_ERROR, "the prompt asked the engine to fail")
            return
        position = running.position
        if running.end is not None and position >= running.end:
            self._end(running, pb.FINISH_STOP)
            return
        token = running.answer.token(position)
        running.made.append(token)
        self._tokens += 1
        text, ids = running.stops.feed((text_of(token, position), (token,)))
        if text or ids:
            running.ticket.emit(text, ids)
        if running.stops.stopped:
            self._end(running, pb.FINISH_STOP)
        elif len(running.made) >= running.budget:
            self._end(running, pb.FINISH_LENGTH)

    def _end(self, running: SimulatedRequest, finish: pb.Finish.ValueType, error: str = "") -> None:
        if not running.stops.stopped:
            text, ids = running.stops.rest()
            if text or ids:
                running.ticket.emit(text, ids)
        self._cache.remember(running.prompt + running.resumed + running.made)
        running.ticket.finish(running.ending(finish, error=error))
        self._line.leave(running.ticket)

    def _misbehave(self, running: SimulatedRequest) -> None:
        troubled = len(running.made) >= TROUBLE_AFTER
        settings = self._settings
        if (troubled and "[[die]]" in running.words) or 0 < settings.die_after_tokens <= self._tokens:
            os.kill(os.getpid(), signal.SIGKILL)
        if (troubled and "[[stall]]" in running.words) or 0 < settings.stall_after_tokens <= self._tokens:
            self._stalled = True
