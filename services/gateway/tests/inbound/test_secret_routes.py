"""Secrets over HTTP: what admins set is sealed before anything is asked, and a node is handed its own copies alone."""

import base64
import time
from typing import Any

import pytest
from weft_contracts.facts.mesh import SecretSet
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, CutOff, Joined
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.request import Fulfilled, SecretRemovalRequested, SecretRequested
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, Member, ModelSpec, Receipt
from weft_contracts.ids import ModelId, NodeId, ReplicaId, TokenId, node_id_of
from weft_contracts.secrets import MOST_BYTES, UNREADABLE
from weft_contracts.subjects import MESH, model, node, replica
from weft_gateway.inbound.admin.named_secrets import NamedSecrets
from weft_gateway.inbound.nodes.node_secrets import NodeSecrets
from weft_gateway.projections.directory import Directory
from weft_identity.nkey import KeyPair, Role
from weft_testing import HandLog

Fronts = Any
KEYED = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"api_key": "secret:a-key"})
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0.0, refusals={}, candidates=()
)
SEALED = "5" * 32
VALUE = "open sesame"


class World:
    """Two nodes, one of which is to run what names a secret; a registry that fulfils all it is asked."""

    def __init__(self) -> None:
        self.log, self.directory = HandLog(), Directory()
        self.log.listen(lambda commit: self.directory.fold([commit]))
        self.keys: dict[NodeId, KeyPair] = {}
        self.here, self.there = self.a_node(), self.a_node()
        self.laid: dict[tuple[NodeId, str, int], bytes] = {}
        self.put_values: list[tuple[str, bytes]] = []
        self.asked: list[Any] = []
        world: Any = self
        self.routers = [
            NamedSecrets(self.directory, world, world).router,
            NodeSecrets(self.directory, self.copy).router,
        ]

    def a_node(self) -> NodeId:
        key = KeyPair.new(Role.USER)
        id = node_id_of(key.public)
        self.keys[id] = key
        addresses = Addresses(host="127.0.0.1", http_port=1)
        joined = Joined(name=f"name-{len(self.keys)}", public_key=key.public, token=TokenId("t"), addresses=addresses)
        self.log.given(node(id), joined, Approved(by="admin"))
        return id

    def place(self) -> None:
        at, id = ModelId("m-1"), ReplicaId("m-1-1")
        self.log.given(model(at), SpecAccepted(name="mine", revision=1, digest="d", spec=KEYED))
        self.log.given(model(at), Scaled(revision=1, add=(id,), why="wanted"))
        members = (Member(node=self.here, rank=0, devices=()),)
        place: dict[str, Any] = {"model": at, "revision": 1, "epoch": 1, "members": members}
        self.log.given(node(self.here), Assigned(replica=id, model_name="mine", digest="d", spec=KEYED, **place))
        self.log.given(replica(id), Placed(receipt=RECEIPT, **place))

    async def copy(self, node: NodeId, name: str, version: int) -> bytes | None:
        return self.laid.get((node, name, version))

    async def put(self, name: str, value: bytes) -> str:
        self.put_values.append((name, value))
        return SEALED

    async def ask(self, request: Any, fact: Any, drawn: frozenset[str] = frozenset()) -> Any:
        self.asked.append((fact, drawn))

        class View:
            id = "q-1"
            outcome = Fulfilled(result={"secret": fact.name, "version": "7"})

        return View

    def poll(self, id: NodeId, name: str = "a-key", *, signed_for: str | None = None, have: int = 0) -> dict[str, Any]:
        nonce = str(int(time.time()))
        said = f"weft-secret:{signed_for or name}:{id}:{nonce}"
        signature = base64.b64encode(self.keys[id].sign(said.encode())).decode()
        return {"node": id, "nonce": nonce, "signature": signature, "name": name, "have": have}


@pytest.fixture
def world() -> World:
    return World()


async def said(fronts: Fronts, world: World, method: str, path: str, body: Any = b"") -> tuple[int, Any]:
    """Status and body of an answer."""
    wire = await fronts.connect(await fronts.open(routers=world.routers))
    wire.send(wire.request(body, path=path).replace(b"POST", method.encode(), 1))
    answer = await wire.answer()
    return answer.status, answer.json()


async def test_a_value_is_sealed_before_anything_is_asked_and_no_answer_has_it(fronts: Fronts, world: World) -> None:
    status, answer = await said(fronts, world, "PUT", "/api/secrets/a-key", {"value": VALUE})
    assert (200, {"request": "q-1", "secret": "a-key", "version": "7"}) == (status, answer)
    assert [("a-key", VALUE.encode())] == world.put_values
    assert [(SecretRequested(name="a-key", sealed=SEALED), frozenset({"sealed"}))] == world.asked


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("a-key", {"value": ""}),
        ("a-key", {"value": VALUE, "more": VALUE}),
        ("a-key", {"value": [VALUE]}),
        ("a-key", {"value": VALUE * 5000}),
        ("a-key", {"value": "ä" * (MOST_BYTES - 1)}),
        ("a-key", b'{"value": "open sesame\\ud800"}'),
        ("a-key", b'{"value": "open sesame'),
        ("a.key", {"value": VALUE}),
        ("a%20key", {"value": VALUE}),
        ("a" * 64, {"value": VALUE}),
    ],
)
async def test_what_is_no_name_or_value_is_refused_unshown(fronts: Fronts, world: World, path: str, body: Any) -> None:
    status, answer = await said(fronts, world, "PUT", f"/api/secrets/{path}", body)
    assert (400, [], []) == (status, world.put_values, world.asked), answer
    assert "sesame" not in str(answer)


async def test_the_largest_value_is_taken(fronts: Fronts, world: World) -> None:
    assert 200 == (await said(fronts, world, "PUT", "/api/secrets/a-key", {"value": "x" * MOST_BYTES}))[0]


async def test_secrets_are_listed_by_name_with_who_names_them_and_removed_by_it(fronts: Fronts, world: World) -> None:
    world.place()
    for version, name in enumerate(("b", "a-key", "c"), 5):
        world.log.given(MESH, SecretSet(name=name, version=version, sealed=SEALED))
    _, page = await said(fronts, world, "GET", "/api/secrets?limit=2")
    assert [("a-key", 6, ["mine"]), ("b", 5, [])] == [(i["name"], i["version"], i["models"]) for i in page["items"]]
    assert {"name", "version", "set_at", "models"} == page["items"][0].keys()
    _, rest = await said(fronts, world, "GET", f"/api/secrets?after={page['next']}")
    assert (["c"], None) == ([each["name"] for each in rest["items"]], rest["next"])
    assert 404 == (await said(fronts, world, "DELETE", "/api/secrets/nobodys"))[0]
    assert 200 == (await said(fronts, world, "DELETE", "/api/secrets/c"))[0]
    assert [(SecretRemovalRequested(name="c"), frozenset())] == world.asked


async def test_a_node_is_handed_the_present_copy_of_what_its_assignments_name(fronts: Fronts, world: World) -> None:
    world.place()
    path = "/api/node/secret"
    # none was set, none is laid out, the one before is
    missing = await said(fronts, world, "POST", path, world.poll(world.here))
    assert (404, "secret_not_found") == (missing[0], missing[1]["code"])
    world.log.given(MESH, SecretSet(name="a-key", version=5, sealed=SEALED))
    assert (202, {"state": "pending"}) == await said(fronts, world, "POST", path, world.poll(world.here))
    world.laid[world.here, "a-key", 5] = b"copy"
    given = {"name": "a-key", "version": 5, "sealed": base64.b64encode(b"copy").decode()}
    assert (200, given) == await said(fronts, world, "POST", path, world.poll(world.here))
    assert (200, given) == await said(fronts, world, "POST", path, world.poll(world.here, have=4))
    same = {**given, "sealed": None}
    assert (200, same) == await said(fronts, world, "POST", path, world.poll(world.here, have=5))
    # another version is not there yet, or can't be made
    world.log.given(MESH, SecretSet(name="a-key", version=9, sealed=SEALED))
    assert 202 == (await said(fronts, world, "POST", path, world.poll(world.here, have=5)))[0]
    world.laid[world.here, "a-key", 9] = UNREADABLE
    spoilt = await said(fronts, world, "POST", path, world.poll(world.here, have=5))
    assert (409, "secret_unreadable") == (spoilt[0], spoilt[1]["code"])


async def test_nobody_else_is_handed_anything(fronts: Fronts, world: World) -> None:
    world.place()
    world.log.given(MESH, SecretSet(name="a-key", version=5, sealed=SEALED))
    world.log.given(MESH, SecretSet(name="other", version=6, sealed=SEALED))
    for id in (world.here, world.there):
        for name, version in (("a-key", 5), ("other", 6)):
            world.laid[id, name, version] = b"copy"
    path = "/api/node/secret"
    # a node without the assignment, a secret that no assignment names
    for poll in (world.poll(world.there), world.poll(world.here, "other")):
        status, answer = await said(fronts, world, "POST", path, poll)
        assert (403, "secret_not_assigned") == (status, answer["code"])
    # a signature for another secret, of another node, for another purpose
    for forged in (
        world.poll(world.here, signed_for="other"),
        world.poll(world.there) | {"node": world.here},
    ):
        status, answer = await said(fronts, world, "POST", path, forged)
        assert (401, "bad_signature") == (status, answer["code"])
    # and one that is cut off
    world.log.given(node(world.here), CutOff(why="it floods"))
    assert 423 == (await said(fronts, world, "POST", path, world.poll(world.here)))[0]
