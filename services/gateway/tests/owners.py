"""The owners of requests for change, as a test plays them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from weft_contracts.commit import Commit
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_contracts.subjects import kind_filter
from weft_eventlog import Projection


@asynccontextmanager
async def owners(world: Any, answer: Callable[[Any, Any], Iterable[Commit]]) -> AsyncGenerator[list[Any]]:
    """Append what `answer` makes of each request and its fact, once; yields what was asked."""
    asked: list[Any] = []

    async def fold(commits: Any) -> None:
        for commit in commits:
            for fact in commit.facts:
                if not isinstance(fact, Fulfilled | Rejected) and (decided := list(answer(commit, fact))):
                    asked.append(fact)
                    await world.log.append(*decided)

    projection = Projection(world.log, name="owners", filters=[kind_filter("request")], fold=fold)
    running = asyncio.create_task(projection.run())
    try:
        yield asked
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
