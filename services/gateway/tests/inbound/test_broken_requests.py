"""What is no request, or never becomes one, and what fails here: each a sentence in its route's form, and an end."""

import asyncio
from typing import Any

import pytest
from weft_gateway.inbound.http import exchange, front_door, gatekeeper
from weft_gateway.inbound.inference.desk import Desk

Fronts = Any
WHOLE = {"model": "sim", "messages": [{"role": "user", "content": "hi"}], "temperature": 0}


async def test_what_is_no_http_is_a_400(fronts: Fronts) -> None:
    front = await fronts.open()
    wire = await fronts.connect(front)
    wire.send(b"hello\r\n\r\n")
    said = await wire.answer()
    assert 400 == said.status
    assert "application/problem+json" == said.headers["content-type"]
    assert await wire.ended()
    wire = await fronts.connect(front)
    wire.send(b"POST /v1/embeddings HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")
    assert "malformed_http" == (await wire.answer()).json()["error"]["code"]


async def test_headers_without_end_are_refused(fronts: Fronts) -> None:
    front = await fronts.open()
    for flood in (b"x-%d: " + b"a" * 1000 + b"\r\n", b"%0999d" + b"a"):
        wire = await fronts.connect(front)
        wire.send(b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nx-a: ")
        for i in range(400):
            wire.send(flood % i)
        said = await wire.answer()
        assert 431 == said.status
        assert "head_too_large" == said.json()["error"]["code"]


async def test_what_is_begun_and_never_sent_is_not_waited_for(fronts: Fronts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_door, "HEAD_WAIT_S", 0.1)
    for bounded in (exchange, gatekeeper):
        monkeypatch.setattr(bounded, "BODY_WAIT_S", 0.1)
    front = await fronts.open()
    half = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{"
    for sent, code in (
        (b"", "head_late"),
        (b"POST /v1/comp", "head_late"),
        (half % b"/v1/completions", "body_late"),
        (half % b"/v1/nothing", "body_late"),
    ):
        wire = await fronts.connect(front)
        wire.send(sent)
        said = await wire.answer()
        assert 408 == said.status
        assert code in said.body.decode()
        assert await wire.ended()


async def test_an_answer_that_takes_long_is_not_taken_for_a_late_request(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_door, "HEAD_WAIT_S", 0.05)
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    whole = wire.request(WHOLE)
    wire.send(whole + whole[:30])
    await engine.has(1)
    await asyncio.sleep(0.2)
    engine.finish_all()
    assert 200 == (await wire.answer()).status
    assert 408 == (await wire.answer()).status


async def test_what_fails_in_the_gateway_is_a_500_in_openais_form(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Desk, "begin", fails)
    front = await fronts.open()
    wire = await fronts.connect(front)
    for _ in range(2):
        wire.post(WHOLE)
        said = await wire.answer()
        assert 500 == said.status
        assert "server_error" == said.json()["error"]["type"]
