"""What waits until prompts can be made here takes no place at a replica meanwhile."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.card import CardFile
from weft_gateway.domain.prompts.comparison import Comparison
from weft_gateway.inbound.inference import prompting
from weft_gateway.outbound.prompts.comparing import compare

from .conftest import MODEL, Front, Fronts, Replica
from .folder_cards import TINY, FolderCards, OwnIds, prompts_of

CHAT = {"model": "sim", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}
TEXT = {"model": "sim", "prompt": "Paris"}
IDS = prompts_of(TINY).tokenizer.encode("Paris", ends=True)


class SlowCards(FolderCards):
    """Its files come when a test says so."""

    def __init__(self) -> None:
        super().__init__({"sim": TINY})
        self.come = asyncio.Event()

    async def file(self, model: str, file: CardFile) -> Path:
        path = await super().file(model, file)
        await self.come.wait()
        return path


class SlowComparing:
    """Comparing begins when a test says so; it may be told what to come to."""

    def __init__(self, told: Comparison | None = None) -> None:
        self.begun = asyncio.Event()
        self.goes_on = asyncio.Event()
        self._told = told

    async def __call__(self, *arguments: Any) -> Comparison:
        self.begun.set()
        await self.goes_on.wait()
        return self._told or await compare(*arguments)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


def taken(front: Front) -> list[int]:
    return [state.in_flight for state in front.pool.endpoint_states(MODEL)]


async def a_chat(fronts: Fronts, front: Front, replica: Replica) -> int:
    """Its status, answered by the engine."""
    wire, before = await fronts.connect(front), len(replica.engine.submits)
    wire.post(CHAT)
    await until(lambda: len(replica.engine.submits) > before)
    replica.engine.finish_all()
    return (await wire.answer()).status


@pytest.mark.parametrize("chosen", [False, True], ids=["any replica", "a chosen one"])
async def test_a_request_that_waits_for_files_takes_no_place(fronts: Fronts, chosen: bool) -> None:
    cards = SlowCards()
    front = await fronts.open(concurrency=1, cards=cards)
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds()
    wires = [await fronts.connect(front) for _ in range(3)]

    for wire in wires:
        wire.post(TEXT, path="/tokenize", headers={"x-weft-replica": replica.id} if chosen else None)
    await until(lambda: cards.asked)

    assert 200 == await a_chat(fronts, front, replica)
    assert [0] == taken(front)
    cards.come.set()
    assert [IDS] * 3 == [(await wire.answer()).json()["tokens"] for wire in wires]


async def test_requests_that_wait_for_a_comparison_take_no_place(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparing = SlowComparing()
    monkeypatch.setattr(prompting, "compare", comparing)
    front = await fronts.open(concurrency=1, cards=FolderCards({"sim": TINY}))
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds()
    wires = [await fronts.connect(front) for _ in range(3)]

    for wire in wires:
        wire.post(TEXT, path="/tokenize")
    async with asyncio.timeout(10):
        await comparing.begun.wait()

    assert 200 == await a_chat(fronts, front, replica)
    assert [0] == taken(front)
    comparing.goes_on.set()
    assert [IDS] * 3 == [(await wire.answer()).json()["tokens"] for wire in wires]


async def test_a_request_whose_comparison_came_to_nothing_waits_for_a_place_to_ask_the_engine(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparing, engine_ids = SlowComparing(Comparison(None, "it differs")), OwnIds()
    monkeypatch.setattr(prompting, "compare", comparing)
    front = await fronts.open(concurrency=1, cards=FolderCards({"sim": TINY}))
    replica = await front.a_replica()
    replica.engine.ids_of = engine_ids
    asks, chats = await fronts.connect(front), await fronts.connect(front)
    asks.post(TEXT, path="/tokenize")
    async with asyncio.timeout(10):
        await comparing.begun.wait()
    chats.post(CHAT)
    await until(lambda: replica.engine.submits)

    comparing.goes_on.set()
    await until(lambda: front.dispatcher.queue.waiting(MODEL))
    assert ([1], 0) == (taken(front), engine_ids.asked)
    replica.engine.finish_all()

    assert 200 == (await chats.answer()).status
    assert IDS == (await asks.answer()).json()["tokens"]
    assert ([0], 1) == (taken(front), engine_ids.asked)


async def test_only_so_many_wait_and_further_ones_are_the_engines(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompting, "MAX_WAITING", 2)
    cards, engine_ids = SlowCards(), OwnIds()
    front = await fronts.open(cards=cards)
    replica = await front.a_replica()
    replica.engine.ids_of = engine_ids
    wires = [await fronts.connect(front) for _ in range(3)]
    for wire in wires[:2]:
        wire.post(TEXT, path="/tokenize")
    await until(lambda: front.prompting.waiting == 2)

    wires[2].post(TEXT, path="/tokenize")

    assert (IDS, 1) == ((await wires[2].answer()).json()["tokens"], engine_ids.asked)
    cards.come.set()
    assert [IDS] * 2 == [(await wire.answer()).json()["tokens"] for wire in wires[:2]]
