"""A session over a real socket: tokens, cancels, refusals, ends."""

import asyncio
import time

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import (
    Ending,
    RequestRefused,
    SessionClient,
    SessionLost,
    SessionRefused,
    UnaryCallFailed,
    engine_session,
    make_hello,
    servicer,
)
from weft_dataplane.limits import MAX_FRAME_BYTES
from weft_dataplane.scripted import HELLO, Collector, Host, served


def text_request(text: str = "hello") -> pb.Submit:
    return pb.Submit(text=text)


async def test_a_request_streams_its_tokens_and_ends_with_usage(client: SessionClient, host: Host) -> None:
    sink = Collector()
    client.submit(text_request(), sink)
    await host.engine.has(1)

    host.engine.step("one ")
    host.engine.step("two")
    host.engine.finish_all()
    last = await sink.end()

    assert sink.text == "one two"
    assert [i for o in sink.outputs for i in o.token_ids] == [7, 7]
    assert last.finish == pb.FINISH_STOP
    assert pb.Usage(prompt_tokens=3, output_tokens=2, cached_tokens=1) == last.usage
    assert client.running == 0


async def test_the_tokens_of_one_step_travel_in_one_frame(client: SessionClient, host: Host) -> None:
    sinks = [Collector() for _ in range(20)]
    for sink in sinks:
        client.submit(text_request(), sink)
    await host.engine.has(20)

    host.engine.step()
    host.engine.finish_all()
    for sink in sinks:
        await sink.end()

    # token and end were made in one turn of the loop, so they are one output
    assert [len(sink.outputs) for sink in sinks] == [1] * 20
    assert client.load.steps == 1


async def test_the_welcome_tells_what_the_engine_is(client: SessionClient) -> None:
    assert (
        client.welcome.engine,
        client.welcome.engine_version,
        client.welcome.context_tokens,
        client.welcome.concurrency,
    ) == ("scripted", "1", 1024, 8)
    assert client.load.kv_used == 0.25


async def test_an_idle_session_hears_the_load_every_second(client: SessionClient, host: Host) -> None:
    host.engine.steps = 41
    async with asyncio.timeout(30):
        while client.load.steps != 41:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        (make_hello("m-2", "i-1", "d-1", "g"), pb.REFUSAL_REASON_WRONG_REPLICA),
        (make_hello("m-1", "i-0", "d-1", "g"), pb.REFUSAL_REASON_WRONG_INCARNATION),
        (make_hello("m-1", "i-1", "d-0", "g"), pb.REFUSAL_REASON_WRONG_REVISION),
        (
            pb.Hello(oldest_version=7, newest_version=9, replica="m-1", incarnation="i-1", revision_digest="d-1"),
            pb.REFUSAL_REASON_VERSION,
        ),
    ],
)
async def test_a_hello_that_means_another_is_refused_by_name(
    host: Host, hello: pb.Hello, reason: pb.RefusalReason.ValueType
) -> None:
    with pytest.raises(SessionRefused) as refused:
        await host.open(hello)
    assert reason == refused.value.reason


async def test_a_loading_host_refuses_sessions_as_not_ready(host: Host) -> None:
    host.servicer.life.move(pb.PHASE_LOADING)
    with pytest.raises(SessionRefused, match="is loading") as refused:
        await host.open()
    assert refused.value.reason == pb.REFUSAL_REASON_NOT_READY


async def test_an_address_where_nobody_listens_is_a_lost_session() -> None:
    with pytest.raises(SessionLost, match=r"no session with 127\.0\.0\.1:1"):
        await SessionClient.open("127.0.0.1:1", HELLO, timeout=2)


async def test_a_retiring_replica_refuses_new_requests_and_finishes_what_runs(
    client: SessionClient, host: Host
) -> None:
    running, late = Collector(), Collector()
    client.submit(text_request(), running)
    await host.engine.has(1)

    host.servicer.life.retire()
    client.submit(text_request(), late)
    refused = await late.end()
    host.engine.step("still here")
    host.engine.finish_all()

    assert (refused.finish, refused.fault) == (pb.FINISH_ERROR, pb.FAULT_RETIRING)
    assert (await running.end()).finish == pb.FINISH_STOP
    assert running.text == "still here"
    with pytest.raises(SessionRefused) as gone:
        await host.open()
    assert gone.value.reason == pb.REFUSAL_REASON_RETIRING


async def test_what_a_host_gives_up_ends_with_its_word_and_no_longer_runs(client: SessionClient, host: Host) -> None:
    sink = Collector()
    number = client.submit(text_request(), sink)
    await host.engine.has(1)
    host.engine.step("so far")

    host.servicer.give_up("not done in time")

    last = await sink.end()
    assert (pb.FINISH_ERROR, pb.FAULT_RETIRING) == (last.finish, last.fault)
    assert ("so far", "not done in time") == (sink.text, last.error)
    assert ([number], 0) == (host.engine.cancelled, host.servicer.running)


async def test_a_cancel_ends_the_request_at_the_engine_and_for_its_sink(client: SessionClient, host: Host) -> None:
    sink = Collector()
    number = client.submit(text_request(), sink)
    await host.engine.has(1)

    client.cancel(number)

    assert (await sink.end()).finish == pb.FINISH_CANCELLED
    assert [number] == host.engine.cancelled
    client.cancel(number)  # an ended request is no error


async def test_a_request_cancelled_before_it_left_never_reaches_the_engine(client: SessionClient, host: Host) -> None:
    sink = Collector()
    client.cancel(client.submit(text_request(), sink))

    assert sink.outputs == [], "never called from within cancel"
    assert (await sink.end()).finish == pb.FINISH_CANCELLED
    assert host.engine.prompts == []


async def test_a_sink_that_raises_loses_its_request_and_no_other(client: SessionClient, host: Host) -> None:
    def broken(output: pb.Output) -> None:
        raise ValueError("broken pipe")

    good = Collector()
    number = client.submit(text_request(), broken)
    client.submit(text_request(), good)
    await host.engine.has(2)

    host.engine.step("x")
    await host.engine.has(1)
    host.engine.step("y")
    host.engine.finish_all()

    await good.end()
    assert good.text == "xy"
    assert [number] == host.engine.cancelled


async def test_a_gateway_that_goes_away_has_its_requests_cancelled(host: Host) -> None:
    client = await host.open()
    sink = Collector()
    client.submit(text_request(), sink)
    await host.engine.has(1)

    await client.close()
    await host.engine.has(0)

    assert host.engine.cancelled == [1]
    assert sink.last.error == "session lost: closed by the gateway"


async def test_every_sink_gets_exactly_one_end_when_the_host_dies() -> None:
    async with served() as host:
        client = await host.open()
        sinks = [Collector() for _ in range(5)]
        for sink in sinks:
            client.submit(text_request(), sink)
        await host.engine.has(5)
        counting = asyncio.create_task(client.unary.count("x" * 10))
        await counting

    why = await asyncio.wait_for(client.closed, 30)

    for sink in sinks:
        assert sum(1 for o in sink.outputs if o.finish) == 1
        assert (sink.last.finish, sink.last.fault) == (pb.FINISH_ERROR, pb.FAULT_ENGINE)
        assert f"session lost: {why}" == sink.last.error
    with pytest.raises(SessionLost):
        client.submit(text_request(), Collector())
    with pytest.raises(UnaryCallFailed, match="session lost"):
        await client.unary.count("x")
    await client.close()


async def test_a_silent_replica_is_given_up(host: Host) -> None:
    client = await SessionClient.open(host.target, HELLO, silence_s=0.4)
    host.servicer._sessions.clear()  # nobody beats for this session any more

    assert "silent" in await asyncio.wait_for(client.closed, 30)
    await client.close()


async def test_a_stop_of_this_loop_itself_is_not_the_replicas_silence(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a replica that speaks much more often than it must
    monkeypatch.setattr(servicer, "BEAT_S", 0.02)
    monkeypatch.setattr(engine_session, "IDLE_FRAME_S", 0.05)
    # and a loop that stands still for longer than the silence that is borne, again and again
    client = await SessionClient.open(host.target, HELLO, silence_s=1.5)
    for _ in range(2):
        time.sleep(1.8)  # noqa: ASYNC251 - the stop is what is tried
        await asyncio.sleep(0)
    # when it runs again
    await asyncio.sleep(1.5)
    # then the replica, which has spoken all the while, is kept
    assert not client.closed.done()
    # and one that falls silent is given up as ever
    host.servicer._sessions.clear()
    assert "silent" in await asyncio.wait_for(client.closed, 30)
    await client.close()


async def test_what_the_engine_refuses_reaches_the_sink_with_its_fault(client: SessionClient, host: Host) -> None:
    host.engine.refuse = RequestRefused(pb.FAULT_CONTEXT_EXCEEDED, "9000 tokens exceed the context of 1024")
    sink = Collector()
    client.submit(text_request(), sink)

    last = await sink.end()

    assert (last.fault, last.error) == (pb.FAULT_CONTEXT_EXCEEDED, "9000 tokens exceed the context of 1024")


async def test_a_request_without_a_prompt_is_refused(client: SessionClient) -> None:
    sink = Collector()
    client.submit(pb.Submit(max_tokens=3), sink)
    assert (await sink.end()).fault == pb.FAULT_BAD_REQUEST


async def test_a_prompt_larger_than_a_frame_arrives_whole(client: SessionClient, host: Host) -> None:
    sink = Collector()
    text = "é" * 3_000_000
    client.submit(text_request(text), sink)
    await host.engine.has(1)

    assert text == host.engine.prompts[0].text
    host.engine.finish_all()
    assert (await sink.end()).finish == pb.FINISH_STOP


async def test_a_large_request_that_is_no_prompt_is_refused_before_it_is_sent(client: SessionClient) -> None:
    sink = Collector()
    client.submit(pb.Submit(text="x", stop=["s" * MAX_FRAME_BYTES]), sink)
    last = await sink.end()
    assert last.fault == pb.FAULT_BAD_REQUEST
    assert "exceeds the bound" in last.error


async def test_unary_calls_are_answered_and_failures_are_sentences(client: SessionClient) -> None:
    chat = pb.Chat(messages=[pb.Message(role="user", content="four")])

    assert await client.unary.count(chat) == 4
    assert await client.unary.count("x" * 600_000) == 600_000
    with pytest.raises(UnaryCallFailed, match="this model does not rerank"):
        await client.unary.rerank("q", ["a"])


async def test_a_prompts_ids_are_told_where_the_engine_has_them_however_many(host: Host, client: SessionClient) -> None:
    assert await client.unary.prompt_ids("four") is None

    host.engine.ids_of = lambda prompt: [*map(ord, prompt.text)]

    assert [102, 111, 117, 114] == await client.unary.prompt_ids("four")
    assert [0x4E00] * 200_000 == await client.unary.prompt_ids("一" * 200_000)
    assert 4 == await client.unary.count("four")


async def test_a_request_number_used_twice_ends_clearly(host: Host, client: SessionClient) -> None:
    first = Collector()
    client.submit(text_request(), first)
    await host.engine.has(1)
    client._outbox.put(pb.ClientFrame(submit=pb.Submit(request=1, text="again")))

    assert (await first.end()).finish != pb.FINISH_UNSPECIFIED
    assert host.engine.cancelled == [1]


async def test_a_frame_that_is_no_request_closes_the_session_by_name(client: SessionClient) -> None:
    client._outbox.put(pb.ClientFrame(hello=HELLO))
    assert "a session goes on with" in await asyncio.wait_for(client.closed, 30)


async def test_nothing_is_emitted_after_the_end(client: SessionClient, host: Host) -> None:
    sink = Collector()
    number = client.submit(text_request(), sink)
    await host.engine.has(1)
    ticket = host.engine.tickets[number]

    ticket.finish(Ending(pb.FINISH_LENGTH))
    ticket.emit("late", [1])
    ticket.finish(Ending(pb.FINISH_STOP))

    assert (await sink.end()).finish == pb.FINISH_LENGTH
    assert sink.text == ""
