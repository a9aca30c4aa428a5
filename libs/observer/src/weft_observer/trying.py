"""A handler is tried until it has done its work, says that it never will, or the time for one fact is up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, RetryError, retry_if_not_exception_type, stop_after_delay
from tenacity.wait import wait_exponential, wait_random
from weft_runtime.health import Health
from weft_runtime.logs import get_logger

from weft_observer import figures
from weft_observer.happened import Happened
from weft_observer.outcomes import Later, Refused

FIRST_S, MOST_S = 0.5, 60.0
"""Seconds between two tries, at first and at most."""
_PART, _DEAD = "handler", "dead letters"
_log: Any = get_logger("weft.observer.trying")


class Trying:
    """Tries, and what `/healthz` and the log say of them."""

    def __init__(self, give_up_after: float, health: Health) -> None:
        self._give_up_after = give_up_after
        self._health = health
        self._dead = 0

    async def done(self, handler: Callable[[Happened], Awaitable[None]], happened: Happened) -> bool:
        """Whether it has done its work; False: this fact is a dead letter."""
        tries = AsyncRetrying(
            retry=retry_if_not_exception_type((Refused, asyncio.CancelledError)),
            wait=_wait,
            stop=stop_after_delay(self._give_up_after),
            before_sleep=self._failed,
        )
        try:
            async for attempt in tries:
                with attempt:
                    await handler(happened)
        except Refused as refused:
            self._died(happened, str(refused))
            return False
        except RetryError as error:
            last = error.last_attempt.exception()
            self._died(happened, f"no success within {self._give_up_after:g} s, at last: {_told(last)}")
            return False
        self._health.set(_PART, None)
        return True

    def _failed(self, state: RetryCallState) -> None:
        why = _told(state.outcome.exception() if state.outcome is not None else None)
        figures.TRIES.inc()
        if state.attempt_number in (1, 2, 4, 8) or state.attempt_number % 16 == 0:
            _log.warning("tried in vain", tries=state.attempt_number, why=why)
        self._health.set(_PART, f"tried {state.attempt_number} times in vain: {why}", own=False)

    def _died(self, happened: Happened, why: str) -> None:
        self._dead += 1
        commit = happened.commit
        _log.error("dead letter", id=happened.id, fact=happened.name, sequence=commit.sequence, why=why)
        said = f"{self._dead} since the start, the last one {happened.name} at {commit.sequence}: {why}"
        self._health.set(_DEAD, said, own=False)
        self._health.set(_PART, None)


_usual = wait_exponential(multiplier=FIRST_S, max=MOST_S) + wait_random(0, FIRST_S)


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.after_s if isinstance(error, Later) else 0.0
    return min(max(asked, _usual(state)), MOST_S)


def _told(error: BaseException | None) -> str:
    return str(error) if isinstance(error, Later) else repr(error)
