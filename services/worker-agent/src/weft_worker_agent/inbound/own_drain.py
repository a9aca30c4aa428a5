"""A worker that is told to stop asks the mesh for its own drain and waits for it; when it is back it says so."""

import asyncio
import contextlib
import random
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential
from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused, UnknownNode
from weft_worker_agent.projections.own_log import OwnLog

ASK_S = 10.0
"""A gateway that doesn't answer for so long is away: the worker stops without a drain."""
MARGIN_S = 5.0
"""Above the drain's own deadline: the last runs stop and are reported, the registry says `drained`."""
_LOOK_S = 0.2
_log: Any = get_logger("weft.own_drain")


class OwnDrain:
    """The drain that a worker asks for itself. It ends at `hurry`, whatever it waits for."""

    def __init__(self, gateway: Gateway, own: OwnLog) -> None:
        self._gateway = gateway
        self._own = own
        self._stops = False
        self._asking = asyncio.Lock()
        self.hurry = asyncio.Event()

    async def drain(self, within_s: float) -> None:
        """Ask for the drain and wait until it is done, `within_s` and a margin at most. Says why where it isn't."""
        self._stops = True
        part = self._own.part
        if not self._own.may_decide or part.approved is None or part.removed:
            return  # nothing was ever placed here, or all of it is lost already
        _log.info("worker drains: what runs here is replaced elsewhere", within_s=within_s)
        drained = asyncio.create_task(self._drained(within_s))
        hurried = asyncio.create_task(self.hurry.wait())
        try:
            await asyncio.wait((drained, hurried), return_when=asyncio.FIRST_COMPLETED)
            if drained.done():
                drained.result()
                _log.info("worker is drained", seconds_allowed=within_s)
            else:
                _log.warning("drain broken off", why="told to end at once")
        except (Refused, NotNow, UnknownNode) as error:
            _log.warning("worker stops without a drain", why=str(error))
        except TimeoutError:
            _log.warning("worker stops before it is drained", after_s=within_s + MARGIN_S)
        except asyncio.CancelledError:
            _log.warning("drain broken off", why="the supervisor is gone")
            raise
        finally:
            for task in (drained, hurried):
                task.cancel()
            await asyncio.gather(drained, hurried, return_exceptions=True)

    async def come_back(self) -> None:
        """Lift a drain of its own that an earlier life left behind, for ever."""
        while True:
            if self._own.may_decide and self._own.part.drain == "worker" and not self._stops:
                with contextlib.suppress(UnknownNode):
                    await self._resume()
            await asyncio.sleep(_LOOK_S * random.uniform(1, 3))

    async def _drained(self, within_s: float) -> None:
        if not self._own.part.drained:
            await self._ask(within_s)
        async with asyncio.timeout(within_s + MARGIN_S):
            while not self._own.part.drained:
                await asyncio.sleep(_LOOK_S)

    async def _ask(self, within_s: float) -> None:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(NotNow),
            stop=stop_after_delay(min(ASK_S, within_s)),
            wait=wait_random_exponential(multiplier=0.2, max=2.0),
            reraise=True,
        ):
            with attempt:
                async with self._asking:
                    await self._gateway.drain(within_s)

    async def _resume(self) -> None:
        try:
            async with self._asking:
                await self._gateway.resume()
            _log.info("worker is back: its drain is over")
        except (NotNow, Refused) as error:
            _log.warning("drain not lifted yet", why=str(error))
            await asyncio.sleep(random.uniform(1, 3))
            return
        for _ in range(20):  # until the log says so
            if self._own.part.drain != "worker":
                return
            await asyncio.sleep(_LOOK_S)
