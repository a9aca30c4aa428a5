"""Ways past the authentication, each tried byte by byte: without a good key, or from elsewhere, nothing is
reached."""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from fastapi import APIRouter
from weft_contracts.api_key import hash_of, key_id, prefix_of, secret_of
from weft_contracts.facts.key import Created, Revoked
from weft_contracts.facts.values import Scope
from weft_contracts.subjects import api_key

Fronts = Any
Front = Any
ASK = {"model": "sim", "messages": [{"role": "user", "content": "hi"}], "temperature": 0}
BODY = json.dumps(ASK).encode()
GOOD, GONE, LATE, WATCHES, BOUND, ADMIN = (secret_of(bytes([n]) * 36) for n in range(6))
CHAT = "POST /v1/chat/completions"


class Treasure:
    """What an admin route would give away, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.router = APIRouter()
        for path in ("/api/treasure", "/api/plans", "/v1/treasure", "/metrics"):
            self.router.add_api_route(path, self.give, methods=["GET", "POST", "DELETE"])

    async def give(self) -> str:
        self.asked.append("treasure")
        return "treasure"


def given(front: Front) -> None:
    """Six keys: for inference, revoked, expired, to watch, bound to a model that isn't there, and an admin's."""
    made: dict[str, tuple[tuple[Scope, ...], dict[str, Any]]] = {
        GOOD: (("inference",), {}),
        GONE: (("admin",), {}),
        LATE: (("admin",), {"expires_at": 1.0}),
        WATCHES: (("read",), {}),
        BOUND: (("inference",), {"models": ("other",)}),
        ADMIN: (("admin",), {}),
    }
    for secret, (scopes, more) in made.items():
        hash = hash_of(secret)
        front.log.given(api_key(key_id(hash)), Created(hash=hash, prefix=prefix_of(secret), scopes=scopes, **more))
    front.log.given(api_key(key_id(hash_of(GONE))), Revoked())


def asks(line: str, *headers: str, body: bytes = b"", host: str | None = "localhost", version: str = "1.1") -> bytes:
    """A request, byte by byte."""
    lines = [f"{line} HTTP/{version}", *([f"host: {host}"] if host is not None else []), *headers]
    if body:
        lines.append(f"content-length: {len(body)}")
        if not any(each.startswith("content-type:") for each in headers):
            lines.append("content-type: application/json")
    return "\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1") + body


def chat(*headers: str, **more: Any) -> bytes:
    return asks(CHAT, *headers, body=BODY, **more)


def bearer(secret: str, scheme: str = "Bearer") -> str:
    return f"authorization: {scheme} {secret}"


def trailed(line: str, *trailers: str) -> bytes:
    """A request in one piece, with trailers behind its body."""
    chunks = [f"{len(BODY):x}", BODY.decode(), "0", *trailers, "", ""]
    return asks(line, "content-type: application/json", "transfer-encoding: chunked") + "\r\n".join(chunks).encode()


Attempts = list[tuple[str, bytes, int]]
WITHOUT_A_KEY: Attempts = [
    # nothing shown, or nothing good
    ("no key", chat(), 401),
    ("an empty key", chat("authorization: Bearer "), 401),
    ("an empty header", chat("authorization:"), 401),
    ("a stranger's key", chat(bearer("sk-0123456789")), 401),
    ("a key of our shape", chat(bearer(secret_of(b"x" * 36))), 401),
    ("a key cut short", chat(bearer(GOOD[:-1])), 401),
    ("a key and more", chat(bearer(GOOD + "x")), 401),
    ("a key in capitals", chat(bearer(GOOD.upper())), 401),
    ("only the public part", chat(bearer(prefix_of(GOOD))), 401),
    ("the hash for the key", chat(bearer(hash_of(GOOD))), 401),
    ("the id for the key", chat(bearer(key_id(hash_of(GOOD)))), 401),
    ("a null byte behind it", chat(bearer(GOOD + "\0")), 400),
    ("a huge key", chat(bearer("weft-" + "a" * 60_000)), 401),
    ("letters beyond ASCII", chat(bearer("weft-\xff\xfe")), 401),
    ("a revoked key", chat(bearer(GONE)), 401),
    ("an expired key", chat(bearer(LATE)), 401),
    ("another scheme", chat(bearer(GOOD, "Basic")), 401),
    ("two keys in one", chat(bearer(f"{GONE}, {GOOD}")), 401),
    ("the key as a user's name", chat(bearer(GOOD, "Digest username=")), 401),
    # the key where it doesn't belong
    ("in the query", asks(f"{CHAT}?api_key={GOOD}", body=BODY), 401),
    ("in a cookie", chat(f"cookie: key={GOOD}"), 401),
    ("in another header", chat(f"x-api-key: {GOOD}", f"proxy-authorization: Bearer {GOOD}"), 401),
    ("in the target", asks(f"POST http://{GOOD}@localhost/v1/chat/completions", body=BODY), 401),
    # headers twice
    ("two keys, the good one first", chat(bearer(GOOD), bearer(GONE)), 400),
    ("two keys, the good one last", chat("authorization: Bearer x", bearer(GOOD)), 400),
    ("the same key twice", chat(bearer(GOOD), bearer(GOOD)), 400),
    ("two hosts", chat(bearer(GOOD), "host: evil.example"), 400),
    ("a folded header", chat("x-a: b\r\n " + bearer(GOOD)), 400),
    # what a proxy would say
    ("forwarded for loopback", chat("x-forwarded-for: 127.0.0.1", "x-real-ip: 127.0.0.1"), 401),
    ("forwarded for loopback, by the standard", chat("forwarded: for=127.0.0.1;host=localhost"), 401),
    # other spellings of the route
    ("escapes in the path", asks("POST /v1/chat%2Fcompletions", body=BODY), 401),
    ("an escaped letter", asks("POST /v1/c%68at/completions", body=BODY), 401),
    ("two slashes", asks("POST //v1/chat/completions", body=BODY), 401),
    ("a slash behind", asks(f"{CHAT}/", body=BODY), 401),
    ("capitals", asks("POST /V1/chat/completions", body=BODY), 401),
    ("a target in absolute form", asks("POST http://localhost/v1/chat/completions", body=BODY), 401),
    ("by way of an open route", asks("POST /healthz/../v1/chat/completions", body=BODY), 401),
    ("by way of the page", asks("GET /page/../api/treasure"), 404),
    ("by way of the page, escaped", asks("GET /page/%2e%2e%2fapi%2ftreasure"), 404),
    ("by way of the joining", asks("GET /api/node/register/../../treasure"), 401),
    ("a parameter in the path", asks("GET /healthz;/api/treasure"), 401),
    ("a fragment", asks("GET /api/treasure#/healthz"), 401),
    # other methods and versions
    ("HEAD", asks("HEAD /v1/chat/completions"), 401),
    ("OPTIONS", asks("OPTIONS /v1/chat/completions", "origin: http://localhost"), 401),
    ("OPTIONS of all", asks("OPTIONS *"), 401),
    ("GET with another's method", asks("GET /api/treasure", "x-http-method-override: HEAD"), 401),
    ("an unknown method", asks("SPY /api/treasure"), 400),
    ("CONNECT", asks("CONNECT localhost:80"), 400),
    ("HTTP/1.0 without a host", chat(host=None, version="1.0"), 401),
    ("HTTP/2's first words", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    (
        "an upgrade to WebSocket",
        asks("GET /api/treasure", "connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13"),
        401,
    ),
    ("an upgrade of a hot route", chat("connection: upgrade", "upgrade: h2c"), 401),
    # behind the body
    ("the key as a trailer", trailed(CHAT, bearer(GOOD)), 401),
    ("the key as a trailer, of a change", trailed("POST /api/treasure", bearer(ADMIN)), 401),
    ("the key as a trailer, of a look", trailed("GET /api/treasure", bearer(ADMIN)), 401),
    # lengths that disagree
    ("two lengths", chat("content-length: 4"), 400),
    ("a length and chunks", chat("transfer-encoding: chunked"), 400),
    # admin routes
    ("an admin route", asks("GET /api/treasure"), 401),
    ("an admin route, to change", asks("POST /api/treasure", body=b"{}"), 401),
    ("an admin route with a key for inference", asks("GET /api/treasure", bearer(GOOD)), 403),
    ("a change with a key to watch", asks("DELETE /api/treasure", bearer(WATCHES)), 403),
    ("a question that changes nothing, without a key", asks("POST /api/plans", body=b"{}"), 401),
    ("the same with a key for inference", asks("POST /api/plans", bearer(GOOD), body=b"{}"), 403),
    ("its path by another method, with a key to watch", asks("DELETE /api/plans", bearer(WATCHES)), 403),
    ("a path below it, with a key to watch", asks("POST /api/plans/", bearer(WATCHES), body=b"{}"), 403),
    ("a change with a key to watch, by its method", asks("POST /api/treasure", bearer(WATCHES), body=b"{}"), 403),
    ("inference with a key to watch", chat(bearer(WATCHES)), 403),
    ("figures", asks("GET /metrics"), 401),
    ("figures with a key for inference", asks("GET /metrics", bearer(GOOD)), 403),
    ("a model that the key may not use", chat(bearer(BOUND)), 403),
    ("a look at a model that the key may not use", asks("GET /v1/models/sim", bearer(BOUND)), 403),
    # pages of others
    ("a foreign page, with a key", chat(bearer(GOOD), "origin: http://evil.example"), 403),
    ("a foreign page, for an image", asks("GET /api/treasure", bearer(ADMIN), "sec-fetch-site: cross-site"), 403),
]


GOOD_ONES: list[tuple[str, bytes]] = [
    ("a key", asks("GET /v1/models", bearer(GOOD))),
    ("an admin's key for everything", asks("GET /v1/models", bearer(ADMIN))),
    ("a scheme in small letters", asks("GET /v1/models", bearer(GOOD, "bearer"))),
    ("a target in absolute form", asks("GET http://localhost/v1/models", bearer(GOOD))),
    ("whatever host", asks("GET /v1/models", bearer(GOOD), host="weft.example")),
    ("a page of the same origin", asks("GET /v1/models", bearer(GOOD), "origin: https://w.example", host="w.example")),
    ("behind a proxy", asks("GET /v1/models", bearer(GOOD), "x-forwarded-for: 10.0.0.1")),
    ("a key to watch", asks("GET /api/treasure", bearer(WATCHES))),
    ("a question with a body, for a watcher", asks("POST /api/plans", bearer(WATCHES), body=b"{}")),
    ("an admin's change", asks("DELETE /api/treasure", bearer(ADMIN))),
    ("figures for a watcher", asks("GET /metrics", bearer(WATCHES))),
]


async def test_a_good_key_leads_in(fronts: Fronts) -> None:
    front = await fronts.open(policy="keys", routers=[Treasure().router])
    given(front)
    for name, request in GOOD_ONES:
        wire = await fronts.connect(front)
        wire.send(request)
        assert (name, 200) == (name, (await wire.answer()).status)


FROM_ELSEWHERE: Attempts = [
    ("a rebound name", asks("GET /api/treasure", host="evil.example"), 403),
    ("a rebound name with a port", asks("GET /api/treasure", host="evil.example:8080"), 403),
    ("a name that begins like loopback", asks("GET /api/treasure", host="127.0.0.1.evil.example"), 403),
    ("a name that ends like loopback", asks("GET /api/treasure", host="evil.localhost"), 403),
    ("loopback as a user", asks("GET /api/treasure", host="localhost@evil.example"), 403),
    ("any address", asks("GET /api/treasure", host="0.0.0.0"), 403),
    ("another address of version 6", asks("GET /api/treasure", host="[::2]"), 403),
    ("an empty host", asks("GET /api/treasure", host=""), 403),
    ("no host", asks("GET /api/treasure", host=None, version="1.0"), 403),
    ("two hosts", asks("GET /api/treasure", "host: evil.example"), 400),
    ("another host in the target", asks("GET http://evil.example/api/treasure"), 403),
    ("another host in the target, in capitals", asks("GET HTTP://evil.example/api/treasure"), 403),
    ("another host behind a user", asks("GET http://localhost@evil.example/api/treasure"), 403),
    ("a foreign page", asks("GET /api/treasure", "origin: http://evil.example"), 403),
    ("another port's page", asks("GET /api/treasure", "origin: http://localhost:3000"), 403),
    ("a nameless page", asks("GET /api/treasure", "origin: null"), 403),
    ("a foreign page's image", asks("GET /api/treasure", "sec-fetch-site: cross-site"), 403),
    ("a proxy's peer", asks("GET /api/treasure", "x-forwarded-for: 10.0.0.1"), 403),
    ("a proxy that says loopback", asks("GET /api/treasure", "x-forwarded-for: 127.0.0.1"), 403),
    ("a proxy, by the standard", asks("GET /api/treasure", "forwarded: for=127.0.0.1"), 403),
    ("a proxy's trace", asks("GET /api/treasure", "via: 1.1 proxy"), 403),
    ("a revoked key", asks("GET /api/treasure", bearer(GONE)), 401),
    ("an unknown key of our shape", asks("GET /api/treasure", bearer(secret_of(b"x" * 36))), 401),
    ("a key for less", asks("GET /api/treasure", bearer(GOOD)), 403),
    ("a hot route by a rebound name", chat(host="evil.example"), 403),
    ("a hot route through a proxy", chat("x-real-ip: 127.0.0.1"), 403),
    ("a hot route for a model that the key may not use", chat(bearer(BOUND)), 403),
]


async def statuses(fronts: Fronts, front: Front, attempts: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    """What each attempt is answered with, on a connection of its own."""
    found: dict[str, str] = {}
    for name, request in attempts:
        wire = await fronts.connect(front)
        wire.send(request)
        async with asyncio.timeout(30):
            said = await wire.reader.read()
        assert b'treasure"' not in said, name
        assert GOOD.encode() not in said, name
        found[name] = said[:12].decode()
    return found


def expected(attempts: Attempts) -> dict[str, str]:
    return {name: f"HTTP/1.1 {status}" for name, _, status in attempts}


async def test_where_keys_are_needed_no_other_way_leads_in(fronts: Fronts) -> None:
    treasure = Treasure()
    front = await fronts.open(policy="keys", routers=[treasure.router])
    given(front)
    engine = (await front.a_replica()).engine
    assert expected(WITHOUT_A_KEY) == await statuses(fronts, front, [each[:2] for each in WITHOUT_A_KEY])
    assert ([], []) == (engine.submits, treasure.asked)


async def test_where_this_machine_needs_no_key_others_dont_pass_for_it(fronts: Fronts) -> None:
    treasure = Treasure()
    front = await fronts.open(routers=[treasure.router])
    given(front)
    engine = (await front.a_replica()).engine
    assert expected(FROM_ELSEWHERE) == await statuses(fronts, front, [each[:2] for each in FROM_ELSEWHERE])
    assert ([], []) == (engine.submits, treasure.asked)


async def test_this_machine_needs_no_key_and_a_clients_placeholder_is_none(fronts: Fronts) -> None:
    front = await fronts.open(routers=[Treasure().router])
    given(front)
    for host in ("localhost", "localhost:80", "127.0.0.1:1", "127.9.9.9", "[::1]:8080", "LocalHost"):
        for key in ("none", "sk-anything", ADMIN):
            wire = await fronts.connect(front)
            wire.send(asks("GET /api/treasure", bearer(key), host=host))
            assert (host, key, 200) == (host, key, (await wire.answer()).status)


def revoke(front: Front, secret: str) -> None:
    front.log.given(api_key(key_id(hash_of(secret))), Revoked())


async def test_a_revoked_key_begins_nothing_more_and_what_runs_runs_on(fronts: Fronts) -> None:
    # given a stream that runs, and requests behind it on the same connection
    front = await fronts.open(policy="keys")
    given(front)
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    headers = {"authorization": f"Bearer {GOOD}"}
    running = wire.request(ASK | {"stream": True}, headers=headers)
    cold = f"GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {GOOD}\r\n\r\n".encode()
    wire.send(running + wire.request(ASK, headers=headers) + cold)
    await engine.has(1)
    engine.step("one")
    assert 200 == (await wire.head())[0]
    # when the key is revoked
    revoke(front, GOOD)
    engine.step(" two")
    engine.finish_all()
    # then the stream ends well, and what waited for its turn is refused
    parts: list[bytes] = []
    while part := await wire.chunk():
        parts.append(part)
    assert b" two" in b"".join(parts)
    assert parts[-1].endswith(b"data: [DONE]\n\n")
    assert (401, 401) == ((await wire.answer()).status, (await wire.answer()).status)
    assert 1 == len(engine.submits)


@pytest.mark.parametrize("target", [CHAT, "POST /api/treasure"])
async def test_a_key_that_ends_while_a_body_comes_is_refused_behind_it(fronts: Fronts, target: str) -> None:
    treasure = Treasure()
    front = await fronts.open(policy="keys", routers=[treasure.router])
    given(front)
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    whole = asks(target, bearer(ADMIN), body=BODY)
    wire.send(whole[:-1])
    await asyncio.sleep(0.05)
    revoke(front, ADMIN)
    wire.send(whole[-1:])
    answer = await wire.answer()
    assert (401, 'Bearer realm="weft"') == (answer.status, answer.headers["www-authenticate"])
    assert ([], []) == (engine.submits, treasure.asked)


async def test_a_key_sees_and_uses_its_own_models_alone(fronts: Fronts) -> None:
    front = await fronts.open(policy="keys")
    given(front)

    async def said(secret: str, request: Callable[..., bytes], *what: Any) -> Any:
        wire = await fronts.connect(front)
        wire.send(request(*what, bearer(secret)))
        return (await wire.answer()).json()

    assert ["sim"] == [each["id"] for each in (await said(GOOD, asks, "GET /v1/models"))["data"]]
    assert [] == (await said(BOUND, asks, "GET /v1/models"))["data"]
    refused = (await said(BOUND, asks, "GET /v1/models/sim"))["error"]
    assert ("model_not_allowed", "model") == (refused["code"], refused["param"])
    # and hears of no other's names
    absent = (await said(BOUND, asks, "GET /v1/models/other"))["error"]
    assert "model_not_found" == absent["code"]
    assert "sim" not in absent["message"]


async def test_while_the_log_is_not_folded_a_key_can_neither_be_taken_nor_refused(fronts: Fronts) -> None:
    front = await fronts.open(policy="keys")
    given(front)
    front.ready = False
    for secret in (GOOD, GONE):
        wire = await fronts.connect(front)
        wire.send(chat(bearer(secret)))
        assert 503 == (await wire.answer()).status
    wire = await fronts.connect(front)
    wire.send(chat())
    assert 401 == (await wire.answer()).status


async def test_the_error_is_openais_on_its_routes_and_a_problem_elsewhere(fronts: Fronts) -> None:
    front = await fronts.open(policy="keys")
    wire = await fronts.connect(front)
    wire.send(chat())
    answer = await wire.answer()
    assert ("invalid_api_key", "invalid_request_error") == (
        answer.json()["error"]["code"],
        answer.json()["error"]["type"],
    )
    other = await fronts.connect(front)
    other.send(asks("GET /api/status"))
    problem = await other.answer()
    assert ("application/problem+json", 401) == (problem.headers["content-type"], problem.json()["status"])
