"""This node's part of the log, folded, and how far."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft_contracts.commit import Guard, Recorded
from weft_contracts.facts.fact import Fact, Unknown, Unreadable, Voided
from weft_contracts.subjects import Aggregate
from weft_contracts.suspects import Suspects
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.own_part import OwnPart, evolve

_log: Any = get_logger("weft.own_log")


class OwnLog:
    """What is remembered of the log. It lives as long as the agent, over any number of connections."""

    def __init__(self) -> None:
        self.part = OwnPart()
        self.position = 0
        self.caught_up = False
        self.halted: str | None = None
        """Why nothing may be decided from it; None if it may."""
        self._suspects = Suspects()
        self._sequences: dict[Aggregate, int] = {}
        self._moved = asyncio.Event()

    @property
    def suspects(self) -> Mapping[Aggregate, str]:
        """Aggregates with a commit that could not be read, and why: nothing is written about them."""
        return self._suspects.why

    @property
    def may_decide(self) -> bool:
        return self.caught_up and self.halted is None

    def guard(self, aggregate: Aggregate) -> Guard:
        """Holds as long as nothing has been written to the aggregate since."""
        return Guard(aggregate, self._sequences.get(aggregate, 0))

    def fold(self, commit: Recorded) -> None:
        """Take the next commit of this node's part."""
        if commit.aggregate.kind in ("machine", "run"):
            self._sequences[commit.aggregate] = commit.sequence
        self.part = evolve(self.part, replace(commit, facts=self._readable(commit)))
        self.position = max(self.position, commit.sequence)
        self._moved.set()
        self._moved = asyncio.Event()

    async def reached(self, sequence: int, timeout: float) -> bool:
        """Wait until a commit is folded, the node's own above all; False if it isn't in time."""
        try:
            async with asyncio.timeout(timeout):
                while self.position < sequence:
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    def _readable(self, commit: Recorded) -> tuple[Fact, ...]:
        kept: list[Fact] = []
        for fact in commit.facts:
            match fact:
                case Unreadable(why=why):
                    self._suspects.note(commit, fact)
                    _log.error("event can't be read", sequence=commit.sequence, why=why)
                case Unknown(skippable=True):
                    pass
                case Unknown(type=type_, v=version):
                    self.halted = (
                        f"{commit.aggregate.kind}.{type_} version {version} at {commit.sequence} "
                        "is newer than this worker: upgrade it"
                    )
                    _log.error("deciding stops: engines run on", why=self.halted)
                case Voided():
                    self._suspects.note(commit, fact)
                case _:
                    kept.append(fact)
        return tuple(kept)
