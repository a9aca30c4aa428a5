"""One session at the engine's side: requests in, one frame per engine step out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.engine import Engine, EngineLoad, RequestRefused
from weft_dataplane.host_life import HostLife
from weft_dataplane.limits import IDLE_FRAME_S
from weft_dataplane.packing import pack, score_bytes
from weft_dataplane.prompts import prompt_of
from weft_dataplane.ticket import Ticket
from weft_dataplane.unary_handler import handle_unary
from weft_dataplane.values import ValueStore

MAX_REQUESTS: Final = 4096
"""Live requests of one session; the next one is refused as busy."""

MAX_UNARY_CALLS: Final = 64
"""Unanswered calls of one session."""

MAX_BACKLOG_BYTES: Final = 8 * 1024 * 1024
"""What may wait for a gateway that does not read, before its session is given up."""

MAX_WRITE_S: Final = 30.0
"""How long one frame may wait for a gateway that does not read."""

SEGMENT_BYTES: Final = 128
"""About what one unmerged token costs in memory beside its text."""

log = logging.getLogger("weft.dataplane")

WriteFrame = Callable[[pb.EngineFrame], Awaitable[None]]


class EngineSession:
    """Reads a gateway's frames and writes the engine's, until either end is gone.

    The engine never waits for a session: what is not yet written is merged per request, and a session whose
    merged backlog outgrows its bound is ended.
    """

    def __init__(self, engine: Engine, life: HostLife, values: ValueStore, gateway: str) -> None:
        self.gateway = gateway
        self._engine = engine
        self._life = life
        self._values = values
        self._tickets: dict[int, Ticket] = {}
        self._touched: list[Ticket] = []
        self._answers: list[pb.Answer] = []
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._last_frame = self._loop.time()
        self._writing_since: float | None = None

    @property
    def running(self) -> int:
        """Requests that have not had their last output, and calls without an answer."""
        return len(self._tickets) + len(self._calls)

    def touch(self, ticket: Ticket) -> None:
        """A ticket has something to send. All that is emitted in this turn of the loop leaves as one frame."""
        if not self._touched:
            self._wake.set()
        self._touched.append(ticket)

    def beat(self, now: float) -> str | None:
        """Called a few times a second: keeps an idle session talking, and tells when one must be given up."""
        if self._writing_since is None:
            if now - self._last_frame >= IDLE_FRAME_S:
                self._wake.set()
            return None
        if now - self._writing_since > MAX_WRITE_S:
            return f"the gateway read nothing for {MAX_WRITE_S:g} s"
        waiting = sum(
            len(text) + SEGMENT_BYTES + score_bytes(scores)
            for ticket in self._touched
            for text, _, scores in ticket.segments
        )
        waiting += sum(len(text) + SEGMENT_BYTES for ticket in self._touched for text in ticket.thoughts)
        if waiting > MAX_BACKLOG_BYTES:
            return f"{waiting} bytes wait for a gateway that does not read"
        return None

    async def write(self, write: WriteFrame) -> None:
        """Write frames until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            frames = self._take()
            self._writing_since = self._loop.time()
            for frame in frames:
                await write(frame)
            self._writing_since = None
            self._last_frame = self._loop.time()

    async def read(self, frames: AsyncIterator[pb.ClientFrame]) -> pb.Refusal | None:
        """Take the gateway's frames until it closes its side; a frame that can't be taken is the answer."""
        async for frame in frames:
            match frame.WhichOneof("frame"):
                case "submit":
                    self._submit(frame.submit)
                case "cancel" if frame.cancel.question:
                    self._withdraw(frame.cancel.question)
                case "cancel":
                    ticket = self._tickets.get(frame.cancel.request)
                    if ticket is not None and ticket.ending is None:
                        self._engine.cancel(ticket)
                case "count" | "embed" | "rerank" as kind:
                    self._call(kind, frame)
                case other:
                    return pb.Refusal(
                        reason=pb.REFUSAL_REASON_MALFORMED,
                        message=f"a session goes on with submit, cancel, count, embed or rerank, not {other}",
                    )
        return None

    def give_up(self, sentence: str, fault: pb.Fault.ValueType) -> None:
        """End what still runs with a word: its gateway sends it elsewhere where it can, as often as it likes for
        FAULT_RETIRING, and a few times for FAULT_ENGINE: the request may be what the engine broke on."""
        for ticket in [each for each in self._tickets.values() if each.ending is None]:
            ticket.fail(fault, sentence)
            self._engine.cancel(ticket)
        for number, task in list(self._calls.items()):
            task.cancel()
            self._refuse(number, fault, sentence)

    def end(self) -> None:
        """The session is over: what still runs is cancelled at the engine."""
        for task in self._calls.values():
            task.cancel()
        tickets = [t for t in self._tickets.values() if t.ending is None]
        self._tickets.clear()
        for ticket in tickets:
            try:
                self._engine.cancel(ticket)
            except Exception:
                log.exception("cancel failed", extra={"request": ticket.number, "gateway": self.gateway})

    def _submit(self, submit: pb.Submit) -> None:
        if submit.request in self._tickets:
            # two requests under one number would mix their tokens: end both, clearly
            self._engine.cancel(self._tickets[submit.request])
            self._tickets[submit.request].fail(
                pb.FAULT_BAD_REQUEST, f"request {submit.request} was submitted twice in this session"
            )
            return
        ticket = self._tickets[submit.request] = Ticket(submit.request, self)
        try:
            if self._life.phase != pb.PHASE_READY:
                raise RequestRefused(
                    pb.FAULT_RETIRING, f"replica {self._life.identity.replica} is retiring: choose another one"
                )
            if len(self._tickets) > MAX_REQUESTS:
                raise RequestRefused(pb.FAULT_BUSY, f"this session already has {MAX_REQUESTS} requests")
            self._engine.submit(submit, prompt_of(submit, self._values), ticket)
        except RequestRefused as refused:
            ticket.fail(refused.fault, refused.sentence, refused.field)
        except Exception as error:
            log.exception("submit failed", extra={"request": submit.request, "gateway": self.gateway})
            ticket.fail(pb.FAULT_ENGINE, f"the engine could not take the request: {error}")

    def _call(self, kind: str, frame: pb.ClientFrame) -> None:
        number = {"count": frame.count, "embed": frame.embed, "rerank": frame.rerank}[kind].question
        if number in self._calls:
            self._refuse(number, pb.FAULT_BAD_REQUEST, f"question {number} was asked twice in this session")
            return
        if len(self._calls) >= MAX_UNARY_CALLS:
            self._refuse(number, pb.FAULT_BUSY, f"this session already has {MAX_UNARY_CALLS} questions")
            return
        if kind != "count" and self._life.phase != pb.PHASE_READY:
            sentence = f"replica {self._life.identity.replica} is retiring: choose another one"
            self._refuse(number, pb.FAULT_RETIRING, sentence)
            return
        task = asyncio.create_task(self._reply(number, frame), name=f"call-{number}")
        self._calls[number] = task
        task.add_done_callback(lambda _: self._calls.pop(number, None))

    def _withdraw(self, number: int) -> None:
        """Nobody waits for the answer any more."""
        task = self._calls.get(number)
        if task is not None:
            task.cancel()

    async def _reply(self, number: int, frame: pb.ClientFrame) -> None:
        try:
            self._answer(await handle_unary(frame, self._engine, self._values))
        except Exception as error:
            log.exception("question failed", extra={"question": number, "gateway": self.gateway})
            self._refuse(number, pb.FAULT_ENGINE, f"the engine failed: {error}"[:1000])

    def _refuse(self, number: int, fault: pb.Fault.ValueType, sentence: str) -> None:
        self._answer(pb.Answer(question=number, error=sentence, fault=fault))

    def _answer(self, answer: pb.Answer) -> None:
        self._answers.append(answer)
        self._wake.set()

    def _take(self) -> list[pb.EngineFrame]:
        touched, self._touched = self._touched, []
        answers, self._answers = self._answers, []
        pending = [(ticket.number, ticket.segments, ticket.ending, ticket.thoughts) for ticket in touched]
        for ticket in touched:
            ticket.segments = []
            if ticket.thoughts:
                ticket.thoughts = []
            ticket.touched = False
            if ticket.ending is not None:
                self._tickets.pop(ticket.number, None)
        return pack(pending, answers, load_frame(self._engine.load()))


def load_frame(load: EngineLoad) -> pb.Load:
    """The engine's load as it travels."""
    return pb.Load(running=load.running, waiting=load.waiting, kv_used=load.kv_used, steps=load.steps)
