"""The routes of nodes' own machines, which whoever reaches the port may call: what that costs, and how often."""

import base64
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from fastapi import APIRouter
from weft_contracts.facts.node import Joined
from weft_contracts.facts.values import Addresses
from weft_contracts.ids import NodeId, TokenId
from weft_contracts.subjects import node
from weft_fleet import JoinLimits, Registrations
from weft_gateway.domain.access import MAX_NODES_BODY, NODE_ROUTES
from weft_gateway.domain.rate_limiter import LIMITS
from weft_gateway.inbound.nodes.heartbeats import Heartbeats
from weft_gateway.inbound.nodes.joining import Joining
from weft_gateway.inbound.nodes.node_files import NodeFiles
from weft_gateway.inbound.nodes.node_secrets import NodeSecrets
from weft_gateway.inbound.nodes.registration_quota import RegistrationQuota
from weft_gateway.inbound.nodes.self_service import SelfService
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.registration_tokens import Tokens
from weft_identity.nkey import KeyPair, Role
from weft_testing import HandLog

Fronts = Any
EndpointConnection = Any
KEY = KeyPair.new(Role.USER)
NODE = NodeId("n-known")
REGISTER, CREDENTIAL = "/api/node/register", "/api/node/credential"
AT_ONCE = LIMITS["proof"][0].at_once


@pytest.fixture
def no_refill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has had enough gets nothing back within the test, however slow the machine is."""
    for what, (one, total) in LIMITS.items():
        monkeypatch.setitem(LIMITS, what, (replace(one, every=3600.0), replace(total, every=3600.0)))


async def credential(_: NodeId) -> bytes | None:
    """What the registry laid out for every node: nothing."""
    return None


def routes() -> Sequence[APIRouter]:
    """The nodes' routes of a mesh that knows one node and no token."""
    log, directory = HandLog(), Directory()
    log.listen(lambda commit: directory.fold([commit]))
    addresses = Addresses(host="127.0.0.1", http_port=1)
    log.given(node(NODE), Joined(name="known", public_key=KEY.public, token=TokenId("t-x"), addresses=addresses))
    asking: Any = None
    quota = RegistrationQuota(Registrations(), JoinLimits())
    joining = Joining(directory, Tokens(), asking, credential, quota)
    secrets, files = NodeSecrets(directory, asking), NodeFiles(directory)
    own = SelfService(directory, asking).router
    return [joining.router, Heartbeats(directory).router, own, secrets.router, files.router]


def signed(what: str = "credential", key: KeyPair = KEY) -> dict[str, str]:
    nonce = str(int(time.time()))
    signature = key.sign(f"weft-{what}:{NODE}:{nonce}".encode())
    return {"node": NODE, "nonce": nonce, "signature": base64.b64encode(signature).decode()}


async def said(wire: EndpointConnection, body: Any, path: str, **headers: str) -> tuple[int, Any, dict[str, str]]:
    wire.post(body, path=path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = await wire.answer()
    return answer.status, answer.json(), answer.headers


async def test_seven_megabytes_of_nonsense_are_refused_unread(fronts: Fronts) -> None:
    # given the body that stopped a gateway for seconds
    nonsense = b'{"field": 1, ' * 500_000
    front = await fronts.open(routers=routes())
    for path in NODE_ROUTES:
        # when it is sent to a node's route
        wire = await fronts.connect(front)
        announced = {"content-length": str(len(nonsense)), "expect": "100-continue"}
        wire.send(wire.request(b"", path=path, headers=announced))
        # then it is refused by its length, before any of it came
        answer = await wire.answer()
        assert (path, 413) == (path, answer.status)
        assert f"larger than {MAX_NODES_BODY} bytes" in answer.json()["detail"]
    # and where it says no length, soon after its bound
    other = await fronts.open(routers=routes())
    wire = await fronts.connect(other)
    chunked = wire.request(b"", path=REGISTER, headers={"transfer-encoding": "chunked"})
    wire.send(chunked.replace(b"content-length: 0", b"x-none: 0"))
    wire.send(b"%x\r\n" % len(nonsense) + nonsense[:1_000_000])
    assert 413 == (await wire.answer()).status


@pytest.mark.usefixtures("no_refill")
async def test_what_does_not_fit_ends_at_the_first_field_and_is_counted(fronts: Fronts) -> None:
    # given as much nonsense as a node's route reads
    front = await fronts.open(policy="keys", routers=routes())
    wire = await fronts.connect(front)
    nonsense = json.dumps({f"f{n}": 1 for n in range(5000)}).encode()
    assert len(nonsense) < MAX_NODES_BODY
    bodies: list[tuple[bytes, str]] = [
        (nonsense, "`f0` is not a field that is known here; leave it out."),
        (b"[" * 60_000, "The body is"),
        (b'{"node": "\xff"}', "The body is not JSON"),
        (b"{", "The body is not JSON: input data was truncated.".lower()),
        (b'{"node": "x\\n", "nonce": "1", "signature": "a"}', "`node` does not fit"),
        (b"", "The body is empty"),
    ]
    for n in range(AT_ONCE):
        body, words = bodies[n % len(bodies)]
        status, problem, _ = await said(wire, body, CREDENTIAL)
        assert (400, True) == (status, words.lower() in problem["detail"].lower()), problem
    # when an address has sent its share of it
    status, problem, headers = await said(wire, nonsense, CREDENTIAL)
    # then it hears when to come again, and still what was wrong
    assert (429, "too_often") == (status, problem["code"])
    assert 1 <= int(headers["retry-after"])
    assert problem["detail"].startswith("`f0` is not a field")
    # and bodies that are not even read count with them
    for wrong in ({"content_type": "text/plain"}, {"content_length": "70000", "expect": "100-continue"}):
        other = await fronts.connect(front)
        assert 429 == (await said(other, b"{}", "/api/node/heartbeat", **wrong))[0]


async def test_signed_polls_of_known_nodes_are_never_held_up(fronts: Fronts) -> None:
    # given an address that has sent far too much that is no good
    front = await fronts.open(policy="keys", routers=routes())
    wire = await fronts.connect(front)
    forged = signed(key=KeyPair.new(Role.USER))
    assert {401, 429} == {(await said(wire, forged, CREDENTIAL))[0] for _ in range(AT_ONCE + 5)}
    while (await said(wire, {}, REGISTER))[0] != 429:
        pass
    # then a node behind it is served all the same, however often it asks; and probes are
    for _ in range(50):
        assert 202 == (await said(wire, signed(), CREDENTIAL))[0]
        assert 200 == (await said(wire, signed("heartbeat") | {"problem": "no log"}, "/api/node/heartbeat"))[0]


@pytest.mark.usefixtures("no_refill")
async def test_registrations_are_counted_by_the_address_that_a_trusted_proxy_names(fronts: Fronts) -> None:
    front = await fronts.open(policy="keys", routers=routes(), trusted="127.0.0.0/8")
    wire = await fronts.connect(front)
    at_once = LIMITS["join"][0].at_once
    # given one who asks too much from behind a proxy
    for _ in range(at_once):
        await said(wire, b"{}", REGISTER, x_forwarded_for="203.0.113.1")
    status, problem, headers = await said(wire, b"{}", REGISTER, x_forwarded_for="203.0.113.1")
    assert (429, "too_often") == (status, problem["code"])
    assert "retry-after" in headers
    # then others behind it are not held up
    assert 400 == (await said(wire, b"{}", REGISTER, x_forwarded_for="203.0.113.2"))[0]
    # and nobody is let in for what a proxy says
    wire.send(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: 127.0.0.1\r\n\r\n")
    assert 401 == (await wire.answer()).status


async def test_where_this_machine_needs_no_key_its_registrations_are_not_counted(fronts: Fronts) -> None:
    front = await fronts.open(routers=routes())
    wire = await fronts.connect(front)
    body = {
        "token": "x",
        "name": "n",
        "public_key": KEY.public,
        "addresses": {"host": "h", "http_port": 1},
        "kind": "x",
    }
    for _ in range(LIMITS["join"][1].at_once + 20):
        assert 400 == (await said(wire, body, REGISTER))[0]
    # but those that come through a proxy are
    heard = {(await said(wire, body, REGISTER, x_forwarded_for="203.0.113.1"))[0] for _ in range(150)}
    assert {400, 429} == heard


@pytest.mark.usefixtures("no_refill")
async def test_bad_keys_are_counted_and_good_ones_are_never_held_up(fronts: Fronts) -> None:
    front = await fronts.open(policy="keys")
    hot, cold = await fronts.connect(front), await fronts.connect(front)
    at_once = LIMITS["key"][0].at_once
    for n in range(at_once):
        if n % 2:
            status = (await said(hot, {}, "/v1/chat/completions", authorization="Bearer weft-x"))[0]
        else:
            status = (await said(cold, {}, "/api/models"))[0]
        assert 401 == status
    status, problem, headers = await said(hot, {}, "/v1/completions")
    assert (429, "too_often") == (status, problem["error"]["code"])
    assert problem["error"]["message"].startswith("A key is needed")
    assert "retry-after" in headers
    assert 429 == (await said(cold, {}, "/api/models"))[0]


@pytest.mark.parametrize("path", sorted(NODE_ROUTES))
async def test_no_page_of_another_origin_calls_a_nodes_route(fronts: Fronts, path: str) -> None:
    front = await fronts.open(policy="anyone", routers=routes())
    wire = await fronts.connect(front)
    for foreign in ({"origin": "http://evil.example"}, {"sec_fetch_site": "cross-site"}):
        status, problem, _ = await said(wire, signed(), path, **foreign)
        assert (403, "foreign_origin") == (status, problem["code"])
