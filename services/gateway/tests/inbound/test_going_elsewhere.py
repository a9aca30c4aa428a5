"""What becomes of a request when its replica fails, is busy, or is not there yet."""

import asyncio
from typing import Any

from structlog.testing import capture_logs
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, RequestRefused
from weft_gateway.inbound.inference.limits import Limits

Fronts = Any
MESSAGES = [{"role": "user", "content": "hi"}]
STREAM = {"model": "sim", "messages": MESSAGES, "stream": True, "temperature": 0, "max_tokens": 9}
WHOLE = STREAM | {"stream": False}
HOT = STREAM | {"temperature": 1}


async def test_a_broken_greedy_stream_goes_on_at_another_replica_of_the_same_revision(fronts: Fronts) -> None:
    front = await fronts.open()
    first, second = await front.a_replica(1), await front.a_replica(2)
    wire = await fronts.connect(front)
    wire.post(STREAM)
    ran, other = await which(first, second)
    ran.engine.step("one ")
    await wire.head()
    assert b"one " in await wire.chunk()
    ran.engine.step("two ")
    assert b"two " in await wire.chunk()
    await ran.die()
    await other.engine.has(1)
    resumed = other.engine.submits[-1]
    assert [7, 7] == list(resumed.resume.output_ids)
    assert "one two " == resumed.resume.text_sent
    assert 7 == resumed.max_tokens
    other.engine.step("three")
    assert b'"content":"three"' in await wire.chunk()
    other.engine.finish_all()
    assert b'"finish_reason":"stop"' in await wire.chunk()


async def test_a_broken_stream_that_is_a_draw_ends_with_an_explicit_error(fronts: Fronts) -> None:
    front = await fronts.open()
    first, second = await front.a_replica(1), await front.a_replica(2)
    wire = await fronts.connect(front)
    wire.post(HOT)
    ran, other = await which(first, second)
    ran.engine.step("one")
    await wire.head()
    await wire.chunk()
    await ran.die()
    last = await wire.chunk()
    assert b'"code":"replica_failed"' in last
    assert last.endswith(b"data: [DONE]\n\n")
    assert b"" == await wire.chunk()
    assert [] == other.engine.submits


async def test_before_the_first_byte_another_replica_takes_over_unseen(fronts: Fronts) -> None:
    front = await fronts.open()
    first, second = await front.a_replica(1), await front.a_replica(2)
    for body in (HOT, HOT | {"stream": False}):
        wire = await fronts.connect(front)
        wire.post(body, headers={"x-weft-explain": "1"})
        ran, other = await which(first, second)
        ran.engine.tickets.popitem()[1].fail(pb.FAULT_ENGINE, "out of luck")
        await other.engine.has(1)
        assert not other.engine.submits[-1].HasField("resume")
        other.engine.step("fine")
        other.engine.finish_all()
        said = await wire.answer()
        assert 200 == said.status
        assert other.id == said.headers["x-weft-replica"]


async def test_a_request_that_fails_everywhere_is_refused_after_three_tries(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    for _ in range(3):
        await engine.has(1)
        engine.tickets.popitem()[1].fail(pb.FAULT_ENGINE, "out of luck")
    said = await wire.answer()
    assert 503 == said.status
    assert "out of luck" in said.json()["error"]["message"]
    assert 3 == len(engine.submits)


async def test_a_lost_replica_is_not_used_until_it_answers_again(fronts: Fronts) -> None:
    front = await fronts.open()
    first = await front.a_replica(1)
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    await first.engine.has(1)
    await first.die()
    second = await front.a_replica(2)
    await second.engine.has(1)
    second.engine.finish_all()
    assert 200 == (await wire.answer()).status
    assert front.pool.ejections()[first.id] is not None
    for _ in range(3):
        wire.post(WHOLE)
        await second.engine.has(1)
        second.engine.finish_all()
        assert 200 == (await wire.answer()).status
    again = await front.served(first.id, "i-2")
    ran = 0
    for _ in range(4):
        wire.post(WHOLE)
        took, _ = await which(again, second)
        ran += took is again
        took.engine.finish_all()
        await wire.answer()
    assert ran


async def test_a_recycled_port_never_answers_for_another_incarnation(fronts: Fronts) -> None:
    front = await fronts.open(Limits(loading_wait=1, busy_wait=1, resume_wait=1))
    replica = await front.a_replica(1)
    front.says_ready(replica.id, replica.port, "i-9")
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    said = await wire.answer()
    assert 503 == said.status
    assert "runs as incarnation i-1, not i-9" in said.json()["error"]["message"]
    assert [] == replica.engine.submits


async def test_a_request_waits_for_a_model_that_loads(fronts: Fronts) -> None:
    front = await fronts.open()
    id = front.a_loading_replica()
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    await asyncio.sleep(0.1)
    engine = (await front.served(id)).engine
    await engine.has(1)
    engine.finish_all()
    assert 200 == (await wire.answer()).status


async def test_a_model_that_does_not_get_ready_is_a_503_that_names_node_and_phase(fronts: Fronts) -> None:
    front = await fronts.open(Limits(loading_wait=0.2))
    front.a_loading_replica()
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    said = await wire.answer()
    assert 503 == said.status
    assert "5" == said.headers["retry-after"]
    assert (
        "Model 'sim' is not ready: replica m-aaaaaaaaaaaaaaaa-1 on node node-1 is loading."
        == said.json()["error"]["message"]
    )


async def test_a_model_that_is_given_up_while_requests_wait_tells_them_why(fronts: Fronts) -> None:
    front = await fronts.open(Limits(loading_wait=60))
    front.a_loading_replica()
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    await until(lambda: front.dispatcher.loading.total == 1)
    front.unservable("the engine died three times")
    said = await wire.answer()
    assert 503 == said.status
    assert "the engine died three times" in said.json()["error"]["message"]
    assert 0 == front.dispatcher.loading.total


async def test_so_many_requests_wait_for_a_model_that_loads_and_not_one_more(fronts: Fronts) -> None:
    front = await fronts.open(Limits(loading_wait=60, loading_line=2))
    id = front.a_loading_replica()
    wires = [await fronts.connect(front) for _ in range(3)]
    for count, wire in enumerate(wires[:2], 1):
        wire.post(WHOLE)
        await until(lambda count=count: front.dispatcher.loading.total == count)
    wires[2].post(WHOLE)
    said = await wires[2].answer()
    assert (503, "5") == (said.status, said.headers["retry-after"])
    assert "is loading, and 2 requests wait for it already." in said.json()["error"]["message"]
    # and those that wait are served once it is ready
    engine = (await front.served(id)).engine
    await engine.has(2)
    engine.finish_all()
    assert [200, 200] == [(await wire.answer()).status for wire in wires[:2]]
    assert 0 == front.dispatcher.loading.total


async def test_an_unservable_model_says_why_at_once(fronts: Fronts) -> None:
    front = await fronts.open(Limits(loading_wait=60))
    front.unservable("the file is no GGUF")
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    said = await wire.answer()
    assert 503 == said.status
    assert "Model 'sim' can't be served: the file is no GGUF" == said.json()["error"]["message"]


async def test_when_all_are_busy_requests_wait_their_turn_and_then_529(fronts: Fronts) -> None:
    front = await fronts.open(Limits(busy_wait=2, busy_queue=2), concurrency=1)
    engine = (await front.a_replica()).engine
    wires = [await fronts.connect(front) for _ in range(4)]
    wires[0].post(WHOLE)
    await engine.has(1)
    wires[1].post(WHOLE)
    await until(lambda: front.dispatcher.queue.total == 1)
    wires[2].post(WHOLE)
    await until(lambda: front.dispatcher.queue.total == 2)
    wires[3].post(WHOLE)
    said = await wires[3].answer()
    assert 529 == said.status
    assert "2 requests wait for it already" in said.json()["error"]["message"]
    engine.step("first")
    engine.finish_all()
    assert 200 == (await wires[0].answer()).status
    await engine.has(1)
    said = await wires[2].answer()
    assert 529 == said.status
    assert "none became free within 2 s" in said.json()["error"]["message"]
    engine.finish_all()
    assert 200 == (await wires[1].answer()).status


async def test_a_client_that_leaves_the_line_gives_its_place_up(fronts: Fronts) -> None:
    front = await fronts.open(Limits(busy_wait=30), concurrency=1)
    engine = (await front.a_replica()).engine
    wires = [await fronts.connect(front) for _ in range(3)]
    for place, wire in enumerate(wires):
        wire.post(WHOLE)
        await until(lambda place=place: front.dispatcher.queue.total == place and len(engine.tickets) == 1)
    await wires[1].close()
    await until(lambda: front.dispatcher.queue.total == 1)
    engine.finish_all()
    assert 200 == (await wires[0].answer()).status
    await engine.has(1)
    engine.finish_all()
    assert 200 == (await wires[2].answer()).status
    assert 2 == len(engine.submits)


async def test_a_replica_that_says_busy_sends_the_request_elsewhere(fronts: Fronts) -> None:
    front = await fronts.open()
    first, second = await front.a_replica(1), await front.a_replica(2)
    first.engine.refuse = RequestRefused(pb.FAULT_BUSY, "full")
    await three_are_answered_by(second, await fronts.connect(front))


async def test_usage_of_a_resumed_stream_counts_both_parts(fronts: Fronts) -> None:
    front = await fronts.open()
    first, second = await front.a_replica(1), await front.a_replica(2)
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    ran, other = await which(first, second)
    ran.engine.step("a")
    ran.engine.step("b")
    await until(lambda: any(len(running.ids) == 2 for running in front.dispatcher.in_flight))
    await ran.die()
    await other.engine.has(1)
    other.engine.step("c")
    other.engine.tickets.popitem()[1].finish(Ending(pb.FINISH_STOP, 3, 1, 0))
    said = (await wire.answer()).json()
    assert "abc" == said["choices"][0]["message"]["content"]
    assert 3 == said["usage"]["completion_tokens"]


async def three_are_answered_by(replica: Any, wire: Any) -> None:
    for _ in range(3):
        wire.post(WHOLE)
        await replica.engine.has(1)
        replica.engine.finish_all()
        assert 200 == (await wire.answer()).status


async def which(first: Any, second: Any) -> tuple[Any, Any]:
    """The replica that has a request, and the other."""
    await until(lambda: bool(first.engine.tickets or second.engine.tickets))
    return (first, second) if first.engine.tickets else (second, first)


async def until(holds: Any) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


async def test_a_replica_whose_own_queue_is_full_for_long_is_a_529(fronts: Fronts) -> None:
    front = await fronts.open(Limits(busy_wait=0.5))
    engine = (await front.a_replica()).engine
    engine.refuse = RequestRefused(pb.FAULT_BUSY, "full")
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    said = await wire.answer()
    assert 529 == said.status
    assert "All replicas of model 'sim' are busy" in said.json()["error"]["message"]
    engine.refuse = None
    wire.post(WHOLE)
    await engine.has(1)
    engine.finish_all()
    assert 200 == (await wire.answer()).status


async def test_a_retiring_replica_is_left_alone(fronts: Fronts) -> None:
    front = await fronts.open()
    first, second = await front.a_replica(1), await front.a_replica(2)
    first.engine.refuse = RequestRefused(pb.FAULT_RETIRING, "this replica retires")
    await three_are_answered_by(second, await fronts.connect(front))
    assert {first.id: "is retiring", second.id: None} == front.pool.ejections()


async def test_a_request_that_meets_many_retiring_replicas_is_still_served(fronts: Fronts) -> None:
    front = await fronts.open(Limits(loading_wait=30, busy_wait=30, tries=2))
    for number in range(1, 6):
        retiring = await front.a_replica(number)
        retiring.engine.refuse = RequestRefused(pb.FAULT_RETIRING, "this replica retires")
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    await until(lambda: len([why for why in front.pool.ejections().values() if why]) == 5)
    # when the one that takes their place is ready
    engine = (await front.a_replica(6)).engine
    await engine.has(1)
    engine.finish_all()
    assert 200 == (await wire.answer()).status


async def test_the_log_says_which_529_a_request_was_answered(fronts: Fronts) -> None:
    front = await fronts.open(Limits(busy_wait=0.2), concurrency=1)
    front.dispatcher._request_log = True
    engine = (await front.a_replica()).engine
    first, second = [await fronts.connect(front) for _ in range(2)]
    first.post(WHOLE)
    await engine.has(1)

    with capture_logs() as lines:
        second.post(WHOLE)
        said = await second.answer()

    [line] = [line for line in lines if line["event"] == "request"]
    assert ("529", said.json()["error"]["message"]) == (line["outcome"], line["error"])
    assert "none became free within 0.2 s" in line["error"]
    engine.finish_all()
    assert 200 == (await first.answer()).status
