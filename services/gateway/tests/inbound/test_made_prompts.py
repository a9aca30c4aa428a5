"""Prompts that the gateway makes: only where its ids were shown to be the engine's, and never holding a request up."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb

from .conftest import EndpointConnection, Front, Fronts, Replica
from .folder_cards import TINY, FolderCards, OwnIds, prompts_of

CHAT = {"model": "sim", "messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 8}
IDS = [1, 278, 201, 377, 287, 303, 285, 291, 305, 836, 33, 2, 201, 1, 281, 201]
"""of that chat, by the built-in model's own template"""


async def ask(wire: EndpointConnection, replica: Replica, body: Any = CHAT) -> Any:
    """One chat, answered by its engine as soon as it is there."""
    before = len(replica.engine.submits)
    wire.post(body)
    async with asyncio.timeout(30):
        while len(replica.engine.submits) == before:
            await asyncio.sleep(0.005)
    replica.engine.finish_all()
    return await wire.answer()


async def detail(front: Front, wire: EndpointConnection) -> Any:
    wire.send(f"GET /v1/models/sim HTTP/1.1\r\nhost: 127.0.0.1:{front.port}\r\n\r\n".encode())
    return (await wire.answer()).json()["weft"]["no_tokenizer"]


async def compared(front: Front, wire: EndpointConnection, replica: Replica, why: str = "") -> None:
    """Ask until the replica was held against the card, and came out as it should."""
    async with asyncio.timeout(30):
        while (said := await detail(front, wire) or "") != why and not (why and why in said):
            await ask(wire, replica)
            await asyncio.sleep(0.02)


async def test_chats_go_as_they_are_until_the_ids_are_shown_to_be_the_engines(fronts: Fronts) -> None:
    front = await fronts.open(cards=FolderCards({"sim": TINY}), submits=True)
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds()
    wire = await fronts.connect(front)

    first = await ask(wire, replica)
    await compared(front, wire, replica)
    then = await ask(wire, replica)

    assert (200, 200) == (first.status, then.status)
    sent = [submit.WhichOneof("prompt") for submit in replica.engine.submits]
    assert ("chat", "tokens") == (sent[0], sent[-1])
    assert IDS == list(replica.engine.submits[-1].tokens.ids)
    assert replica.engine.submits[-1].parsed


async def test_each_run_is_asked_once_and_sent_ids_only_after_that(fronts: Fronts) -> None:
    front = await fronts.open(cards=FolderCards({"sim": TINY}), submits=True)
    one, engine_ids = await front.a_replica(1), OwnIds()
    one.engine.ids_of = engine_ids
    wire = await fronts.connect(front)
    await compared(front, wire, one)
    probes = engine_ids.asked
    two = await front.a_replica(2)
    two.engine.ids_of = OwnIds()

    answers = [wire.request(CHAT | {"n": 1}, headers={"x-weft-replica": two.id}) for _ in range(2)]
    for request in answers:
        before = len(two.engine.submits)
        wire.send(request)
        async with asyncio.timeout(30):
            while len(two.engine.submits) == before or not two.engine.ids_of.asked:
                await asyncio.sleep(0.005)
        two.engine.finish_all()
        assert 200 == (await wire.answer()).status
        async with asyncio.timeout(30):
            while front.prompting.comparing:
                await asyncio.sleep(0.005)
    await ask(wire, one)

    assert ["chat", "tokens"] == [submit.WhichOneof("prompt") for submit in two.engine.submits]
    assert probes == engine_ids.asked


async def test_a_template_that_differs_is_found_named_and_not_used(fronts: Fronts, tmp_path: Path) -> None:
    doctored = shutil.copytree(TINY, tmp_path / "doctored")
    template = doctored / "chat_template.jinja"
    template.write_text(template.read_text() + "{# the same #}{% if messages|length > 2 %}Obey.{% endif %}")
    front = await fronts.open(cards=FolderCards({"sim": doctored}), submits=True)
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds()
    wire = await fronts.connect(front)

    await compared(front, wire, replica, "by the model's card")

    assert {"chat"} == {submit.WhichOneof("prompt") for submit in replica.engine.submits}
    wire.post({"model": "sim", "tokens": [1]}, path="/detokenize")
    error = (await wire.answer()).json()["error"]
    assert ("no_tokenizer", True) == (error["code"], "by the model's card" in error["message"])


async def test_an_engine_that_tells_no_ids_goes_on_making_its_prompts(fronts: Fronts) -> None:
    front = await fronts.open(cards=FolderCards({"sim": TINY}), submits=True)
    replica = await front.a_replica()
    wire = await fronts.connect(front)

    await compared(front, wire, replica, "tells no token ids")

    assert {"chat"} == {submit.WhichOneof("prompt") for submit in replica.engine.submits}


async def test_files_that_are_away_are_named_and_tried_again_later(fronts: Fronts) -> None:
    cards = FolderCards({"sim": TINY})
    cards.away = "tokenizer.json can't be had: every worker that has it is away"
    front = await fronts.open(cards=cards, submits=True)
    replica = await front.a_replica()
    wire = await fronts.connect(front)

    await compared(front, wire, replica, cards.away)
    tries = cards.asked.count("tokenizer.json")
    for _ in range(3):
        await ask(wire, replica)

    assert (1, 1) == (tries, cards.asked.count("tokenizer.json"))


@pytest.mark.parametrize(
    "more",
    [
        {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]},
        {"tools": [{"type": "function", "function": {"name": "look"}}]},
    ],
    ids=["an assistant's last message", "tools"],
)
async def test_what_engines_make_in_ways_of_their_own_goes_as_it_is(fronts: Fronts, more: dict[str, Any]) -> None:
    front = await fronts.open(cards=FolderCards({"sim": TINY}), submits=True)
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds()
    wire = await fronts.connect(front)
    await compared(front, wire, replica)

    await ask(wire, replica, CHAT | more)

    assert "chat" == replica.engine.submits[-1].WhichOneof("prompt")


async def test_a_prompt_that_fills_the_context_is_refused_with_the_numbers_before_an_engine_is_asked(
    fronts: Fronts,
) -> None:
    front = await fronts.open(cards=FolderCards({"sim": TINY}), submits=True)
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds()
    wire = await fronts.connect(front)
    await compared(front, wire, replica)
    asked = len(replica.engine.submits)
    long = [{"role": "user", "content": "paris " * 20_000}]  # in a thread
    wire.post(CHAT | {"messages": long})
    refused = await wire.answer()
    count = len(prompts_of(TINY).tokenizer.encode("paris " * 20_000))

    assert (400, "context_length_exceeded", "messages") == (
        refused.status,
        refused.json()["error"]["code"],
        refused.json()["error"]["param"],
    )
    said = refused.json()["error"]["message"]
    assert said.endswith(" and `max_tokens` asks for 8, the context holds 1024 with the answer.")
    assert count < int(said.split()[3]) < count + 20
    assert asked == len(replica.engine.submits)


async def test_without_the_setting_only_what_is_surely_long_is_counted(fronts: Fronts) -> None:
    front = await fronts.open(cards=FolderCards({"sim": TINY}))
    front.a_model(context_tokens=1024)
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds()
    wire = await fronts.connect(front)
    long = CHAT | {"messages": [{"role": "user", "content": "Paris " * 2_000}]}
    for _ in range(3):
        await ask(wire, replica)
    assert 0 == replica.engine.ids_of.asked
    await ask(wire, replica, long)
    await compared(front, wire, replica)
    await ask(wire, replica)
    wire.post(long)
    refused = await wire.answer()

    assert {"chat"} == {submit.WhichOneof("prompt") for submit in replica.engine.submits}
    assert (400, "context_length_exceeded") == (refused.status, refused.json()["error"]["code"])


async def test_tokenize_and_detokenize_answer_as_vllms_server_does(fronts: Fronts) -> None:
    front = await fronts.open(cards=FolderCards({"sim": TINY}))
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds()
    wire = await fronts.connect(front)
    body = {"model": "sim", "messages": CHAT["messages"]}

    wire.post(body, path="/tokenize")
    found = (await wire.answer()).json()
    wire.post(body | {"return_token_strs": True}, path="/v1/tokenize")
    strings = (await wire.answer()).json()["token_strs"]
    wire.post({"model": "sim", "tokens": found["tokens"]}, path="/v1/detokenize")
    text = (await wire.answer()).json()["prompt"]

    assert {"count": 16, "max_model_len": 1024, "tokens": IDS, "token_strs": None} == found
    assert (16, "<|im_start|>") == (len(strings), strings[0])
    assert "<|im_start|>user\nwhat is the capital of france?<|im_end|>\n<|im_start|>assistant\n" == text
    await replica.die()
    wire.post({"model": "sim", "prompt": "Paris"}, path="/tokenize")
    assert prompts_of(TINY).tokenizer.encode("Paris", ends=True) == (await wire.answer()).json()["tokens"]


async def test_without_a_tokenizer_here_the_engines_ids_are_given_and_the_rest_is_refused(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds()
    wire = await fronts.connect(front)
    wire.post({"model": "sim", "messages": CHAT["messages"]}, path="/tokenize")
    assert IDS == (await wire.answer()).json()["tokens"]

    wire.post({"model": "sim", "tokens": IDS}, path="/detokenize")
    refused = await wire.answer()

    error = refused.json()["error"]
    assert (400, "no_tokenizer", "model") == (refused.status, error["code"], error["param"])
    assert "Model 'sim' has no tokenizer here: its workers published no metadata card." == error["message"]


async def test_ids_that_are_none_are_refused(fronts: Fronts) -> None:
    front = await fronts.open(cards=FolderCards({"sim": TINY}))
    replica = await front.a_replica()
    replica.engine.ids_of = OwnIds()
    wire = await fronts.connect(front)

    wire.post({"model": "sim", "tokens": [1, 999_999]}, path="/detokenize")

    refused = await wire.answer()
    assert (400, "tokens") == (refused.status, refused.json()["error"]["param"])
    assert "999999 is no token of this model: it has 2048." == refused.json()["error"]["message"]


async def test_an_engine_that_is_asked_for_ids_and_fails_keeps_nobody_waiting(fronts: Fronts) -> None:
    front = await fronts.open(cards=FolderCards({"sim": TINY}), submits=True)
    replica = await front.a_replica()

    def fails(prompt: pb.Prompt) -> list[int]:
        raise RuntimeError("no tokenizer in this state")

    replica.engine.ids_of = fails
    wire = await fronts.connect(front)
    for _ in range(3):
        assert 200 == (await ask(wire, replica)).status
    assert {"chat"} == {submit.WhichOneof("prompt") for submit in replica.engine.submits}
