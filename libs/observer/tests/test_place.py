"""A place in the log, read as an observer reads it: what a worker writes into a message's headers decides nothing."""

import asyncio

import pytest
from faststream.params import NoCast
from weft_contracts.commit import Recorded
from weft_contracts.ids import NodeId
from weft_contracts.topology import observer_durable
from weft_eventlog import apply_durable
from weft_observer.place import place
from weft_runtime.broker import make_place_broker
from weft_runtime.health import Health
from weft_testing.mesh_server import MeshServer

NODE = NodeId("n-two")
RUN = "weft.ev.run.n-two.m-1.loading"
LOADING = b'[{"type":"loading","epoch":1,"incarnation":"a"}]'


@pytest.mark.parametrize("reply_to", ["a b", "$JS.API.STREAM.DELETE.EVENTS"])
async def test_nothing_is_sent_to_where_a_message_wants_an_answer(reply_to: str, mesh_server: MeshServer) -> None:
    # given an observer's place, and a worker's message that names where its reader should answer
    root = await mesh_server.root()
    await apply_durable(root, observer_durable("press"))
    worker = await mesh_server.worker(NODE)
    for headers in ({"reply_to": reply_to}, None):
        assert b"seq" in (await worker.request(RUN, LOADING, headers=headers, timeout=30)).data
    # when the observer reads it
    health, taken = Health(), asyncio.Queue[int]()
    file = mesh_server.observer_file("press")
    broker = make_place_broker("press", mesh_server.url, file, None, health, lambda: None, lambda there: None)

    async def take(commit: NoCast[Recorded | None]) -> None:
        assert commit is not None
        taken.put_nowait(commit.sequence)

    broker.subscriber(**place("press"))(take)
    async with broker:
        await broker.start()
        read = [await asyncio.wait_for(taken.get(), 30) for _ in range(2)]
    # then each is read once, and nothing was refused
    assert ([1, 2], {}) == (read, health.problems)
