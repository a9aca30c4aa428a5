"""Pages of other origins, in a real browser: allowed ones call with a key and read what was wrong, others nothing."""

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from fastapi import APIRouter
from weft_contracts.api_key import hash_of, key_id, prefix_of, secret_of
from weft_contracts.facts.key import Created
from weft_contracts.subjects import api_key
from weft_gateway.domain.cors import Cors
from weft_testing.browser import Browser

Fronts = Any
Front = Any
KEY = secret_of(b"c" * 36)
ASK = {"model": "sim", "messages": [{"role": "user", "content": "hi"}], "temperature": 0}
CALL = """
const [url, method, headers, body, done] = arguments;
fetch(url, {method, headers, body: body === null ? undefined : body})
  .then(async (said) => done([said.status, said.headers.get('x-request-id') !== null, await said.text()]))
  .catch((error) => done([0, false, String(error)]));
"""


class Page(BaseHTTPRequestHandler):
    """An empty page of another origin."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The origin of an application that is not the gateway's."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


def a_key(front: Front) -> None:
    hash = hash_of(KEY)
    made = Created(hash=hash, prefix=prefix_of(KEY), scopes=("inference", "read"))
    front.log.given(api_key(key_id(hash)), made)


def status_route() -> APIRouter:
    async def give() -> str:
        return "status"

    router = APIRouter()
    router.add_api_route("/api/status", give, methods=["GET"])
    return router


async def test_a_page_of_an_allowed_origin_asks_with_a_key_streams_and_reads_its_errors(
    fronts: Fronts, browser: Browser, elsewhere: str
) -> None:
    front = await fronts.open(policy="keys", cors=Cors(frozenset({elsewhere})), routers=[status_route()])
    a_key(front)
    engine = (await front.a_replica()).engine
    await asyncio.to_thread(browser.open, elsewhere)
    at = f"http://127.0.0.1:{front.port}"
    bearer = {"authorization": f"Bearer {KEY}", "content-type": "application/json", "x-stainless-lang": "js"}

    async def call(path: str, method: str = "GET", headers: Any = None, body: Any = None) -> Any:
        asked = partial(browser.ask, CALL, at + path, method, headers or {}, body)
        return await asyncio.to_thread(asked)

    # it reads a list, and streams an answer
    assert [200, True] == (await call("/v1/models", headers=bearer))[:2]
    streaming = asyncio.create_task(call("/v1/chat/completions", "POST", bearer, json.dumps(ASK | {"stream": True})))
    await engine.has(1)
    engine.step("Paris")
    engine.finish_all()
    status, named, text = await streaming
    assert (200, True) == (status, named)
    assert "Paris" in text
    # it reads why it is refused: without a key, on a hot route and another, and for what it sent
    assert [401, 401, 400] == [
        (await call("/v1/models"))[0],
        (await call("/v1/chat/completions", "POST", {"content-type": "application/json"}, "{}"))[0],
        (await call("/v1/chat/completions", "POST", bearer, "{"))[0],
    ]
    # what lies beside /v1 it may not even ask
    assert 0 == (await call("/api/status", headers=bearer))[0]
    browser.errors()
    # and where everything is allowed it may
    everywhere = Cors(frozenset({elsewhere}), everywhere=True)
    front = await fronts.open(policy="keys", cors=everywhere, routers=[status_route()])
    a_key(front)
    at = f"http://127.0.0.1:{front.port}"
    assert [200, True] == (await call("/api/status", headers=bearer))[:2]
    browser.errors()


async def test_a_page_of_any_other_origin_gets_nothing(fronts: Fronts, browser: Browser, elsewhere: str) -> None:
    await asyncio.to_thread(browser.open, elsewhere)
    for cors in (None, Cors(frozenset({"https://app.example"}), everywhere=True)):
        front = await fronts.open(cors=cors)
        engine = (await front.a_replica()).engine
        at = f"http://127.0.0.1:{front.port}/v1"
        for path, method, kind in (
            ("/models", "GET", ""),
            ("/chat/completions", "POST", "application/json"),
            ("/chat/completions", "POST", "text/plain"),  # without a preflight
        ):
            headers = {"content-type": kind} if kind else {}
            body = json.dumps(ASK) if method == "POST" else None
            asked = partial(browser.ask, CALL, at + path, method, headers, body)
            assert 0 == (await asyncio.to_thread(asked))[0]
        assert [] == engine.submits
    browser.errors()


async def test_every_answer_of_the_routes_that_differ_by_origin_says_so_to_caches(fronts: Fronts) -> None:
    front = await fronts.open(cors=Cors(frozenset({"https://app.example"})))
    wire = await fronts.connect(front)
    offered: tuple[dict[str, str], ...] = ({}, {"origin": "https://app.example"})
    for origin in offered:
        wire.post(b"{", headers=origin)
        hot = (await wire.answer()).headers
        wire.post(b"{", path="/v1/nothing", headers=origin)
        cold = (await wire.answer()).headers
        for headers in (hot, cold):
            assert "origin" == headers["vary"]
            assert origin.get("origin") == headers.get("access-control-allow-origin")
            assert "access-control-allow-credentials" not in headers
