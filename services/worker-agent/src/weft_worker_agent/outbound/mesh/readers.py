"""Which nodes may be given files: a gateway says it, by the log, and it is kept for a while."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, TypeVar

from weft_contracts.ids import NodeId
from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused
from weft_worker_agent.outbound.mesh.signed_words import Words

LONGEST_YES_S: Final = 60.0
NO_S: Final = 5.0
UNKNOWN_S: Final = 1.0
"""So long an unanswered question is not asked again."""
KEPT: Final = 1024
"""Answers of yes, and as many of no; the oldest goes."""
AT_ONCE: Final = 16
"""Questions; whoever comes then is told to come again."""
EACH: Final = 2
"""Of them, those about one node: words cost nobody anything, and true ones are soon answered."""
K = TypeVar("K")
V = TypeVar("V")
_Asked = tuple[str, Words]
_Refused = tuple[str, Words | NodeId]
_log: Any = get_logger("weft.files")


class NotAReader(Exception):
    """A gateway says no; the message is a sentence."""


class NotKnown(Exception):
    """No gateway says yes or no just now."""


class Readers:
    """Of one agent. A yes is kept by all that was said and signed: whoever names another node has none of its. What is
    no yes is kept apart, so that it pushes out none; by the node alone where its certificate tells that it speaks."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._clock = clock
        self._yes: OrderedDict[_Asked, float] = OrderedDict()
        """Until when each is good."""
        self._no: OrderedDict[_Refused, tuple[float, Exception]] = OrderedDict()
        self._asking: dict[_Asked, asyncio.Task[Exception | None]] = {}

    async def check(self, files: str, words: Words, *, known: bool = False) -> None:
        """`known`: the caller is the node that the words name. Raises NotAReader, NotKnown."""
        asked = files, words
        if self._clock() < self._yes.get(asked, 0.0):
            return
        refused = files, words.node if known else words
        until, fault = self._no.get(refused, (0.0, None))
        if self._clock() >= until:
            fault = await asyncio.shield(self._question(asked, refused))
        if fault is not None:
            raise type(fault)(str(fault))

    def _question(self, asked: _Asked, refused: _Refused) -> "asyncio.Task[Exception | None]":
        """The one that is open, or a new one. Raises NotKnown."""
        task = self._asking.get(asked)
        if task is None:
            node = asked[1].node
            if len(self._asking) >= AT_ONCE:
                raise NotKnown("too many ask for files at once")
            if sum(words.node == node for _, words in self._asking) >= EACH:
                raise NotKnown(f"too many ask for files at once in the name of the node {node}")
            task = self._asking[asked] = asyncio.create_task(self._ask(asked, refused))
            task.add_done_callback(lambda _: self._asking.pop(asked, None))
        return task

    async def _ask(self, asked: _Asked, refused: _Refused) -> Exception | None:
        files, words = asked
        try:
            good_s = min(await self._gateway.files_reader(files, words.body()), LONGEST_YES_S)
        except Refused as error:
            good_s, fault = NO_S, NotAReader(str(error))
            _log.warning("files not given", files=files, reader=words.node, why=str(error))
        except NotNow as error:
            good_s, fault = UNKNOWN_S, NotKnown(f"no gateway tells who may read: {error}")
        else:
            _keep(self._yes, asked, self._clock() + good_s)
            return None
        _keep(self._no, refused, (self._clock() + good_s, fault))
        return fault


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > KEPT:
        kept.popitem(last=False)
