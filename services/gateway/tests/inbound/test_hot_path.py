"""HTTP on the hot routes, byte by byte: keep-alive, pipelining, chunks, bounds, slow and vanishing clients."""

import asyncio
import json
from typing import Any

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending

Fronts = Any
STREAM = {"model": "sim", "messages": [{"role": "user", "content": "hi"}], "stream": True, "temperature": 0}
WHOLE = STREAM | {"stream": False}


async def test_a_stream_carries_each_step_and_ends_with_done(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    wire.post(STREAM, headers={"x-request-id": "abc"})
    await engine.has(1)
    engine.step('He said "é"')
    status, headers = await wire.head()
    first = await wire.chunk()
    assert 200 == status
    assert "text/event-stream; charset=utf-8" == headers["content-type"]
    assert "abc" == headers["x-request-id"]
    assert b'"role":"assistant"' in first
    assert 'He said \\"é\\"'.encode() in first
    engine.step("!")
    assert b'"content":"!"' in await wire.chunk()
    engine.finish_all()
    last = await wire.chunk()
    assert b'"finish_reason":"stop"' in last
    assert last.endswith(b"data: [DONE]\n\n")
    assert b"" == await wire.chunk()


async def test_a_connection_serves_one_request_after_another(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    for body in (WHOLE, STREAM, WHOLE):
        wire.post(body)
        await engine.has(1)
        engine.step("a")
        engine.finish_all()
        assert 200 == (await wire.answer()).status


async def test_pipelined_requests_are_answered_in_order_hot_and_cold_alike(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    cold = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n"
    bad = wire.request(b"{")
    wire.send(wire.request(WHOLE) + cold + bad + wire.request(WHOLE) + cold)
    await engine.has(1)
    engine.step("one")
    engine.finish_all()
    assert "one" == (await wire.answer()).json()["choices"][0]["message"]["content"]
    assert "list" == (await wire.answer()).json()["object"]
    assert 400 == (await wire.answer()).status
    await engine.has(1)
    engine.step("two")
    engine.finish_all()
    assert "two" == (await wire.answer()).json()["choices"][0]["message"]["content"]
    assert "list" == (await wire.answer()).json()["object"]


async def test_many_pipelined_refusals_do_not_nest(fronts: Fronts) -> None:
    front = await fronts.open()
    wire = await fronts.connect(front)
    wire.send(wire.request(b"{") * 2000)
    for _ in range(2000):
        assert 400 == (await wire.answer()).status


async def test_a_body_in_chunks_and_in_drops_is_taken(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    whole = wire.request(WHOLE)
    body = whole.partition(b"\r\n\r\n")[2]
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
    head += b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    wire.send(head)
    for start in range(0, len(body), 20):
        part = body[start : start + 20]
        wire.send(b"%x\r\n%b\r\n" % (len(part), part))
        await wire.writer.drain()
        await asyncio.sleep(0)
    wire.send(b"0\r\n\r\n")
    await engine.has(1)
    engine.finish_all()
    assert 200 == (await wire.answer()).status


async def test_who_expects_a_hundred_gets_it_before_the_body(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    head, _, body = wire.request(WHOLE, headers={"expect": "100-continue"}).partition(b"\r\n\r\n")
    wire.send(head + b"\r\n\r\n")
    assert (100, {}) == await wire.head()
    wire.send(body)
    await engine.has(1)
    engine.finish_all()
    assert 200 == (await wire.answer()).status


async def test_a_body_that_is_too_large_is_a_413_with_or_without_a_length(fronts: Fronts) -> None:
    front = await fronts.open(max_body=2048)
    wire = await fronts.connect(front)
    wire.post(b"x" * 4096)
    said = await wire.answer()
    assert 413 == said.status
    assert "The body is larger than 2048 bytes; make it smaller." == said.json()["error"]["message"]
    assert await wire.ended()

    wire = await fronts.connect(front)
    wire.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(4):
        wire.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
    assert 413 == (await wire.answer()).status
    wire.send(b"0\r\n\r\n")
    assert await wire.ended()


async def test_a_client_that_sends_on_after_its_413_still_reads_it(fronts: Fronts) -> None:
    front = await fronts.open(max_body=2048)
    wire = await fronts.connect(front)
    wire.post(b"x" * (4 << 20))
    await wire.writer.drain()
    assert 413 == (await wire.answer()).status
    assert await wire.ended()


async def test_a_client_of_http_1_0_gets_a_plain_stream_and_the_end(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    wire.post(STREAM, version="1.0")
    await engine.has(1)
    engine.step("x")
    engine.finish_all()
    said = await wire.answer()
    assert "close" == said.headers["connection"]
    assert "x" == said.text
    assert "[DONE]" == said.events[-1]


async def test_a_client_that_goes_away_cancels_its_request_at_the_engine(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    wire.post(STREAM)
    await engine.has(1)
    engine.step()
    await wire.head()
    await wire.close()
    await engine.has(0)
    assert 1 == len(engine.cancelled)
    assert not front.dispatcher.in_flight


async def test_a_client_that_goes_before_the_first_byte_cancels_too(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    for body in (STREAM, WHOLE):
        wire = await fronts.connect(front)
        wire.post(body)
        await engine.has(1)
        await wire.close()
        await engine.has(0)
    assert 2 == len(engine.cancelled)


async def test_a_slow_client_is_dropped_and_its_neighbour_is_not(fronts: Fronts) -> None:
    front = await fronts.open(slow_client_bytes=100_000)
    engine = (await front.a_replica()).engine
    slow, good = await fronts.connect(front), await fronts.connect(front)
    slow.writer.transport.pause_reading()
    slow.post(STREAM)
    await engine.has(1)
    good.post(STREAM)
    await engine.has(2)
    reading = asyncio.create_task(good.answer())
    async with asyncio.timeout(30):
        while len(engine.tickets) == 2:
            engine.step("x" * 20_000)
            await asyncio.sleep(0.002)
    assert 1 == len(engine.cancelled)
    engine.step("end")
    engine.finish_all()
    said = await reading
    assert said.text.endswith("end")
    assert "[DONE]" == said.events[-1]
    assert 1.0 == front.registry.get_sample_value("weft_gateway_shed_total")


H2C = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMA"}


async def test_an_offer_to_upgrade_is_declined_by_an_answer_in_http_1_1_and_nothing_is_lost(fronts: Fronts) -> None:
    # given requests behind one another that offer h2c, with bodies whole and in chunks, and some that don't
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    cold = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    body = json.dumps(WHOLE).encode()
    chunked = wire.request(b"", headers=H2C).replace(b"content-length: 0", b"transfer-encoding: chunked")
    chunked += b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    sent = wire.request(WHOLE, headers=H2C) + cold * 3 + chunked + wire.request(WHOLE)
    # when they come in two pieces, cut within the first one's body
    wire.send(sent[:300])
    await wire.writer.drain()
    await asyncio.sleep(0.05)
    wire.send(sent[300:])
    # then each is answered in its turn, as if it had offered nothing
    for asked in ("chat", "models", "models", "models", "chat", "chat"):
        if asked == "chat":
            await engine.has(1)
            engine.step("one")
            engine.finish_all()
        said = await wire.answer()
        assert (asked, 200) == (asked, said.status)
        assert ("upgrade" in said.headers) is False
    assert 3 == len(engine.submits)


async def test_thousands_of_offers_in_one_piece_do_not_nest(fronts: Fronts) -> None:
    front = await fronts.open()
    wire = await fronts.connect(front)
    offer = (
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: x\r\ncontent-length: 1\r\n\r\n{"
    )
    wire.send(offer * 2000)
    for _ in range(2000):
        assert 403 == (await wire.answer()).status


async def test_a_target_in_absolute_form_is_its_path(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    for path in ("http://localhost/v1/chat/completions", "HTTP://LOCALHOST:1/v1/chat/completions?x=1"):
        wire.post(WHOLE, path=path)
        await engine.has(1)
        engine.finish_all()
        assert (path, 200) == (path, (await wire.answer()).status)
    for target, status in (
        (b"http://localhost/v1/models", 200),
        (b"http://localhost", 404),
        (b"http://localhost?x", 404),
    ):
        wire.send(b"GET %b HTTP/1.1\r\nhost: localhost\r\n\r\n" % target)
        assert (target, status) == (target, (await wire.answer()).status)


async def test_http_1_1_without_a_host_is_a_400_and_http_1_0_needs_none_in_the_target(fronts: Fronts) -> None:
    front = await fronts.open(policy="anyone")
    for line in ("GET /v1/models", "GET /healthz", "POST /v1/completions", "POST /api/node/register"):
        wire = await fronts.connect(front)
        wire.send(f"{line} HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        said = await wire.answer()
        assert (line, 400) == (line, said.status)
        assert b"no_host" in said.body
    local = await fronts.open()
    wire = await fronts.connect(local)
    wire.send(b"GET http://localhost/v1/models HTTP/1.0\r\n\r\n")
    assert 200 == (await wire.answer()).status


async def test_head_is_answered_where_get_is_without_a_body(fronts: Fronts) -> None:
    front = await fronts.open()
    wire = await fronts.connect(front)
    for path, status in ((b"/v1/models", 200), (b"/v1/models/none", 404), (b"/v1/completions", 405)):
        wire.send(b"HEAD %b HTTP/1.1\r\nhost: localhost\r\n\r\n" % path)
        got, headers = await wire.head()
        assert (path, status) == (path, got)
        assert 0 < int(headers["content-length"])
    wire.send(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert "list" == (await wire.answer()).json()["object"]


async def test_a_body_says_that_it_is_json(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    for said in ("text/plain", "application/x-www-form-urlencoded", ""):
        wire = await fronts.connect(front)
        wire.post(WHOLE, headers={"content-type": said})
        answer = await wire.answer()
        assert (415, "not_json") == (answer.status, answer.json()["error"]["code"])
    wire = await fronts.connect(front)
    for said in ("application/json; charset=utf-8", "Application/JSON", "application/problem+json"):
        wire.post(WHOLE, headers={"content-type": said})
        await engine.has(1)
        engine.finish_all()
        assert (said, 200) == (said, (await wire.answer()).status)


async def test_a_query_behind_the_path_changes_nothing(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    wire.post(WHOLE, path="/v1/chat/completions?api-version=1")
    await engine.has(1)
    engine.finish_all()
    assert 200 == (await wire.answer()).status


async def test_a_foreign_host_origin_or_a_compressed_body_is_refused(fronts: Fronts) -> None:
    front = await fronts.open()
    for headers, status in (
        ({"host": "evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content-encoding": "gzip"}, 415),
        ({"x-request-id": "a b"}, 400),
    ):
        wire = await fronts.connect(front)
        wire.post(WHOLE, headers=headers)
        assert status == (await wire.answer()).status


async def test_before_the_log_is_folded_the_answer_is_503(fronts: Fronts) -> None:
    front = await fronts.open()
    front.ready = False
    wire = await fronts.connect(front)
    wire.post(WHOLE)
    assert 503 == (await wire.answer()).status
    wire.send(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert 503 == (await wire.answer()).status


async def test_the_wrong_method_and_an_unknown_route_say_so(fronts: Fronts) -> None:
    front = await fronts.open()
    wire = await fronts.connect(front)
    for line, status, words in (
        (b"GET /v1/chat/completions", 405, "does not take GET; it takes POST"),
        (b"GET /v1/nothing", 404, "There is no route /v1/nothing"),
    ):
        wire.send(line + b" HTTP/1.1\r\nhost: localhost\r\n\r\n")
        said = await wire.answer()
        assert status == said.status
        assert words in said.json()["error"]["message"]


async def test_the_stop_of_the_gateway_ends_streams_with_an_explicit_error(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    wire.post(STREAM)
    await engine.has(1)
    engine.step("half")
    await wire.head()
    await wire.chunk()
    await front.dispatcher.finish_all(0)
    last = await wire.chunk()
    assert b'"code":"stopping"' in last
    assert last.endswith(b"data: [DONE]\n\n")


async def test_an_engines_refusal_of_the_request_is_the_clients_400(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    wire.post(STREAM)
    await engine.has(1)
    engine.tickets[1].finish(
        Ending(pb.FINISH_ERROR, fault=pb.FAULT_CONTEXT_EXCEEDED, error="the prompt has 9 tokens, the context holds 8")
    )
    said = await wire.answer()
    assert 400 == said.status
    assert "context_length_exceeded" == said.json()["error"]["code"]
