"""A canary: one token asked of an engine from inside its host. The first makes a replica ready; later ones are asked
after a long time without a step, so that an engine that stands still while nobody wants anything is noticed.

A canary runs like any request, so while it waits the engine's load shows work without steps: the agent judges that
as a stall. No session asked for it, so no gateway counts what it used.
"""

import asyncio
import contextlib
import logging
from typing import Final

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, Engine, HostLife, OwnCanary, RequestRefused, Ticket

LOOK_S: Final = 1.0
PROMPT: Final = "a"

log = logging.getLogger("weft.engine")


class CanaryFailed(Exception):
    """The engine answered a canary with an error of its own; the message is its sentence."""


class Unheard:
    """A ticket's outlet without a session behind it."""

    def touch(self, ticket: Ticket) -> None:
        """Nobody takes the token."""
        ticket.segments = []
        ticket.touched = False


async def ask(engine: Engine) -> None:
    """Wait until the engine has made something: a token, a vector or a score, whichever it takes requests for.

    Returns at once where it refuses all three: nothing can then be asked of it. Raises CanaryFailed. It is asked with
    the text of its facts; an engine that is `OwnCanary` says itself how it is asked.
    """
    if isinstance(engine, OwnCanary):
        await engine.canary()
        return
    text = engine.facts.canary or PROMPT
    for one in (_token, _vector, _score):
        try:
            await one(engine, text)
        except RequestRefused as refused:
            if refused.fault == pb.FAULT_BAD_REQUEST:
                continue
            if refused.fault == pb.FAULT_ENGINE:
                raise CanaryFailed(refused.sentence) from None
        return


async def _token(engine: Engine, text: str) -> None:
    ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
    ticket = Ticket(0, Unheard())
    ticket.on_end = lambda ending: None if ended.done() else ended.set_result(ending)
    request = pb.Submit(text=text, max_tokens=1, sampling=pb.Sampling(temperature=0))
    engine.submit(request, pb.Prompt(text=text), ticket)
    try:
        ending = await ended
    except asyncio.CancelledError:
        engine.cancel(ticket)
        raise
    if ending.finish == pb.FINISH_ERROR:
        raise RequestRefused(ending.fault, ending.error)


async def _vector(engine: Engine, text: str) -> None:
    await engine.embed([text])


async def _score(engine: Engine, text: str) -> None:
    await engine.rerank(text, [text])


class Watchdog:
    """Looks at a loaded engine's steps, and asks it for a token after a long time without one."""

    def __init__(self, engine: Engine, life: HostLife, canary_after_s: float) -> None:
        """`canary_after_s`: seconds without a step; 0: it is never asked."""
        self._engine = engine
        self._elsewhere = isinstance(engine, OwnCanary)
        self._life = life
        self._after_s = canary_after_s
        self._clock = asyncio.get_running_loop().time
        self._steps = -1
        self._works_since: float | None = None
        """Since when it has had work and made no step; None: it has no work."""
        self._quiet_since = self._clock()
        """When it was last seen to have work or to have made a step."""

    @property
    def still_s(self) -> float:
        """For how long it has had work and made no step, in seconds."""
        self._look()
        return 0.0 if self._works_since is None else self._clock() - self._works_since

    async def run(self) -> None:
        """Watch until cancelled."""
        look_s = min(LOOK_S, self._after_s / 4) if self._after_s else LOOK_S
        while True:
            await asyncio.sleep(look_s)
            self._look()
            if self._after_s and self._clock() - self._quiet_since >= self._after_s:
                await self._canary(look_s)

    async def _canary(self, look_s: float) -> None:
        asking = asyncio.create_task(ask(self._engine), name="canary")
        self._life.asks = True
        try:
            while not asking.done():
                await asyncio.wait((asking,), timeout=look_s)
                self._look()
            asking.result()
        except Exception as error:  # an engine that answers with an error has answered
            log.warning("canary failed", extra={"reason": str(error)[:500]})
        finally:
            self._life.asks = False
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await asking
            self._quiet_since = self._clock()

    def _look(self) -> None:
        load, now = self._engine.load(), self._clock()
        busy = load.running + load.waiting > 0 or self._life.asks
        stepped, self._steps = load.steps != self._steps, load.steps
        if busy and self._elsewhere:
            self._life.signs += 1
            stepped = True
        if not busy:
            self._works_since = None
        elif stepped or self._works_since is None:
            self._works_since = now
        if busy or stepped:
            self._quiet_since = now
