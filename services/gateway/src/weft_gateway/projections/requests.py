"""Requests for change and their outcomes: the newest ones in memory, and who waits for an outcome."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.ids import RequestId

from weft_gateway.domain.request_view import RequestView, evolve_request

KEPT = 10_000
"""Older ones are looked up in the log or in the tables."""


@dataclass(eq=False)
class Requests:
    """Folded from the log's requests."""

    kept: int = field(default=KEPT, compare=False)
    _views: OrderedDict[RequestId, RequestView] = field(default_factory=OrderedDict[RequestId, RequestView])
    _waiters: dict[RequestId, set[asyncio.Future[RequestView]]] = field(
        default_factory=dict[RequestId, set[asyncio.Future[RequestView]]], compare=False
    )
    forgotten: int = 0
    """Last sequence of the newest request that is no longer kept."""

    def fold(self, commits: Sequence[Recorded]) -> None:
        for commit in commits:
            if commit.aggregate.kind == "request":
                self._apply(commit)

    def get(self, id: RequestId) -> RequestView | None:
        """A request that is kept; None says nothing about older ones."""
        return self._views.get(id)

    def since(self, sequence: int) -> Iterable[RequestView]:
        """The kept requests that moved after a sequence."""
        return [view for view in self._views.values() if view.sequence > sequence]

    async def outcome(self, id: RequestId, timeout: float) -> RequestView:
        """The request once it has its outcome. Raises TimeoutError."""
        view = self._views.get(id)
        if view is not None and view.outcome is not None:
            return view
        waiter: asyncio.Future[RequestView] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(id, set()).add(waiter)
        try:
            return await asyncio.wait_for(waiter, timeout)
        finally:
            waiters = self._waiters.get(id, set())
            waiters.discard(waiter)
            if not waiters:
                self._waiters.pop(id, None)

    def _apply(self, commit: Recorded) -> None:
        id = RequestId(commit.aggregate.key)
        view = evolve_request(self._views.get(id), commit)
        if view is None:
            return
        self._views[id] = view
        if len(self._views) > self.kept:
            _, oldest = self._views.popitem(last=False)
            self.forgotten = max(self.forgotten, oldest.sequence)
        if view.outcome is not None:
            for waiter in self._waiters.get(id, ()):
                if not waiter.done():
                    waiter.set_result(view)
