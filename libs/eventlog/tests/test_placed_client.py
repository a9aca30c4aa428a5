"""An observer's place in the log: once each, in order, from where it was, over failures, ends and restarts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from nats.errors import TimeoutError as NothingYet
from nats.js.api import ConsumerConfig
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit
from weft_contracts.facts import node
from weft_contracts.ids import CorrelationId, NodeId
from weft_contracts.topology import observer_durable
from weft_eventlog import EventLog, apply_durable, drop_durable, durable_reader, placed_client
from weft_eventlog.ordered_consumer import stream_sequence
from weft_eventlog.placed_client import PlacedClient, PlacedMsg, PlacedSubscription
from weft_testing.mesh_server import MeshServer

NAME = "press"
PLACE = observer_durable(NAME)
CAUSE = Cause(CorrelationId("c"))
Start = Callable[[], Awaitable["Reading"]]


@pytest.fixture
async def root(mesh_server: MeshServer) -> EventLog:
    return EventLog(await mesh_server.root(), actor="root")


async def note(root: EventLog, count: int = 1) -> None:
    for _ in range(count):
        await root.append(Commit(subjects.node(NodeId("n-one")), (node.Healthy(),), None, CAUSE))


class Reading:
    """One process of an observer."""

    def __init__(self, client: PlacedClient, subscription: PlacedSubscription) -> None:
        self.client = client
        self.subscription = subscription

    async def next(self) -> PlacedMsg:
        async with asyncio.timeout(40):
            while True:
                try:
                    [message] = await self.subscription.fetch(timeout=5)
                except NothingYet:
                    continue
                assert isinstance(message, PlacedMsg)
                return message

    async def take(self, count: int) -> list[int]:
        taken: list[int] = []
        for _ in range(count):
            message = await self.next()
            taken.append(stream_sequence(message))
            await message.ack()
        return taken

    async def killed(self) -> None:
        """Its socket is gone: nothing that it asked for is taken back."""
        self.client.drop()
        self.subscription._reading.cancel()


@pytest.fixture
def told() -> list[bool]:
    """Whether its place is there, as it was told."""
    return []


@pytest.fixture
def died() -> list[BaseException]:
    """What has ended its reading."""
    return []


@pytest.fixture
async def start(mesh_server: MeshServer, told: list[bool], died: list[BaseException]) -> AsyncIterator[Start]:
    made: list[Reading] = []

    async def reading() -> Reading:
        client = PlacedClient(told.append, died.append)
        await client.connect(
            mesh_server.url,
            user_credentials=str(mesh_server.observer_file(NAME)),
            inbox_prefix=f"_INBOX_{NAME}".encode(),
            max_reconnect_attempts=-1,
            reconnect_time_wait=1,
        )
        durable = PLACE.name
        subscription = await client.jetstream().pull_subscribe("weft.ev.>", durable, "EVENTS", ConsumerConfig())
        assert isinstance(subscription, PlacedSubscription)
        made.append(Reading(client, subscription))
        return made[-1]

    yield reading
    for each in made:
        await each.subscription.unsubscribe()
        await each.client.close()


async def test_it_goes_on_behind_what_was_acknowledged_whoever_ended_it(
    root: EventLog, mesh_server: MeshServer, start: Start
) -> None:
    await apply_durable(await mesh_server.root(), PLACE)
    await note(root, 5)
    first = await start()
    assert [1, 2] == await first.take(2)
    await first.next()
    # when: it is killed with one at hand and two more on the way
    await first.killed()
    second = await start()
    # then
    assert [3, 4, 5] == await second.take(3)
    await second.subscription.unsubscribe()
    await note(root)
    assert [6] == await (await start()).take(1)


async def test_what_is_not_acknowledged_comes_again_before_anything_else(
    root: EventLog, mesh_server: MeshServer, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placed_client, "FIRST_AGAIN_S", 0.01)
    await apply_durable(await mesh_server.root(), PLACE)
    await note(root, 3)
    reading = await start()
    for delay in (None, None, 0.01):
        message = await reading.next()
        assert 1 == stream_sequence(message)
        await message.nak(delay)
    assert [1] == await reading.take(1)
    await (await reading.next()).term()
    assert [3] == await reading.take(1)


@pytest.mark.usefixtures("short_tries")
async def test_a_restart_of_the_server_loses_and_repeats_nothing(
    root: EventLog, mesh_server: MeshServer, start: Start
) -> None:
    await apply_durable(await mesh_server.root(), PLACE)
    await note(root, 2)
    reading = await start()
    assert [1] == await reading.take(1)
    mesh_server.restart()
    await note(root)
    assert [2, 3] == await reading.take(2)


async def test_a_subject_that_is_no_text_does_not_stop_it(
    root: EventLog, mesh_server: MeshServer, start: Start
) -> None:
    await apply_durable(await mesh_server.root(), PLACE)
    worker = await mesh_server.worker(NodeId("n-two"))
    await worker._send_command(b"PUB weft.ev.run.n-two.\xff\xfe.loading 2\r\n[]\r\n")
    await worker.flush()
    await note(root)
    assert [1, 2] == await (await start()).take(2)


async def test_an_error_that_ends_its_reading_is_told(
    mesh_server: MeshServer, start: Start, died: list[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def torn(self: durable_reader.DurableReader) -> None:
        raise ValueError("no such answer")

    monkeypatch.setattr(durable_reader.DurableReader, "_rewind", torn)
    reading = await start()
    with pytest.raises(NothingYet):
        await reading.subscription.fetch(timeout=0.1)
    assert ["no such answer"] == [str(each) for each in died]
    reading.subscription._reading = asyncio.create_task(asyncio.sleep(0))  # what ends it may end


async def test_who_may_read_from_now_on_gets_nothing_of_what_was_before_whatever_it_asks(
    root: EventLog, mesh_server: MeshServer, start: Start
) -> None:
    await note(root, 3)
    await apply_durable(await mesh_server.root(), observer_durable(NAME, begin=4))
    reading = await start()
    await note(root)
    assert [4] == await reading.take(1)
    answer = await reading.client.request("$JS.API.CONSUMER.RESET.EVENTS.observer-press", b'{"seq":1}', timeout=30)
    assert b"below start" in answer.data


async def test_it_is_told_when_its_place_is_gone_and_when_it_is_there_again(
    root: EventLog, mesh_server: MeshServer, start: Start, told: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable_reader, "_ANSWER_S", 0.2)
    monkeypatch.setattr(durable_reader, "_PAUSE", 0.01)
    client = await mesh_server.root()
    await apply_durable(client, PLACE)
    await note(root)
    reading = await start()
    assert [1] == await reading.take(1)
    await drop_durable(client, PLACE)

    async def comes(expected: list[bool]) -> None:
        async with asyncio.timeout(40):
            while told != expected:
                await asyncio.sleep(0.05)

    await comes([False])
    await apply_durable(client, PLACE)
    await comes([False, True])
    await note(root)
    assert [2] == await reading.take(1)
