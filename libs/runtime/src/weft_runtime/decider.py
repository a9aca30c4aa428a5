"""The loop of a service that decides: fold, decide, append, fold what was appended, decide again."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prometheus_client import Counter, Histogram
from weft_contracts.codec import CommitTooLarge
from weft_contracts.commit import Commit, Decision
from weft_contracts.subjects import Aggregate
from weft_eventlog import Conflict, EventLog, LogFull, LogUnavailable, Projection
from weft_eventlog.cancelling import end_if_cancelled

from weft_runtime import traces
from weft_runtime.health import Health
from weft_runtime.leadership import Leadership
from weft_runtime.logs import get_logger

Decide = Callable[[float, int], Sequence[Decision]]
"""From the time (seconds since the epoch) and a seed to what the state lacks. Pure: no clock, no chance."""

TICK = 1.0
"""Seconds between decisions where nothing moves: rules that depend on time."""
_NAMED = 20
_log: Any = get_logger("weft.decider")
_APPENDED = Counter("weft_decisions_appended_total", "Decisions that the log took")
_LOST = Counter("weft_decisions_lost_total", "Decisions that lost to another writer")
_REFUSED = Counter("weft_log_refused_total", "Decisions that the log refused for want of room")
_SECONDS = Histogram("weft_decide_seconds", "Time that one call of decide took")


class Decider:
    """Calls `decide` after each folded batch and every second, while this instance leads and may decide."""

    def __init__(
        self, log: EventLog, projection: Projection, leadership: Leadership, health: Health, decide: Decide
    ) -> None:
        self._log = log
        self._projection = projection
        self._leadership = leadership
        self._health = health
        self._decide = decide

    async def run(self) -> None:
        """Decide for ever. Ends by cancellation, or by an error of `decide` itself."""
        await self._projection.caught_up.wait()
        let_go = False
        while True:
            end_if_cancelled()
            before = self._projection.position
            self._report()
            if self._projection.outdated is not None and not let_go:
                let_go = True
                await self._leadership.release()  # an instance of the later release may decide
            if self._leadership.held and self._projection.halted is None and await self._round():
                continue
            if self._projection.position == before:
                await self._projection.moved(TICK)

    async def _round(self) -> bool:
        """One round of decisions. True if something was appended and folded."""
        began_ns = traces.now_ns()
        started = time.perf_counter()
        decisions = self._decide(time.time(), random.getrandbits(53))
        _SECONDS.observe(time.perf_counter() - started)
        last = 0
        for decision in decisions:
            if self._touches_suspects(decision.commits):
                continue
            try:
                last = max(last, *await self._append(decision, began_ns))
                _APPENDED.inc()
            except Conflict as conflict:
                _LOST.inc()
                _log.info("lost to another writer", conflict=str(conflict), why=decision.why)
                await asyncio.sleep(random.uniform(0, 0.05))
                await self._projection.moved(TICK)
                return True
            except LogUnavailable as error:
                _log.warning("the log is away", error=str(error))
                return False
            except LogFull as error:
                _REFUSED.inc()
                self._health.set("log", str(error), own=False)
                _log.error("the log is full", error=str(error))
                await asyncio.sleep(TICK)
                return False
            except CommitTooLarge as error:
                # The others must not wait for it: a rule that decides this is a defect, and people must hear of it.
                if self._health.problems.get("decision") != str(error):
                    _log.error("a decision is too large", error=str(error), why=decision.why)
                self._health.set("decision", str(error), own=False)
                continue
            self._health.set("log", None)
        if not last:
            return False
        try:
            await self._projection.wait_for(last, timeout=10.0)
        except TimeoutError:
            _log.warning("own decisions not yet folded", sequence=last)
        return True

    async def _append(self, decision: Decision, began_ns: int) -> tuple[int, ...]:
        if not traces.on():
            return await self._log.append(*decision.commits)
        with traces.deciding(decision, began_ns):
            return await self._log.append(*decision.commits)

    def _touches_suspects(self, commits: Sequence[Commit]) -> bool:
        suspects = self._projection.suspects
        if not suspects:
            return False
        touched: set[Aggregate] = {commit.aggregate for commit in commits}
        touched |= {commit.guard.aggregate for commit in commits if commit.guard is not None}
        return not touched.isdisjoint(suspects)

    def _report(self) -> None:
        """Say through health what keeps this service from deciding."""
        self._health.set("projection", self._projection.halted)
        self._health.set("suspect", told(self._projection.suspects), own=False)


def told(suspects: Mapping[Aggregate, str]) -> str | None:
    """The first suspects and how many more there are, for people; None without any."""
    named = [f"{aggregate}: {why}" for aggregate, why in sorted(suspects.items())[:_NAMED]]
    more = [f"and {len(suspects) - _NAMED} more"] if len(suspects) > _NAMED else []
    return "; ".join(named + more) or None
