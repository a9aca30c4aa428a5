"""Files among nodes over HTTP: who needs them by the log is told whom to ask, and may be given them; nobody else."""

import base64
import time
from typing import Any

import pytest
from weft_contracts.digest import files_digest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FilesCame
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, CutOff, Healthy, Joined, Unassigned, WentOffline
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.source import HfSource, SourceFile, UploadSource
from weft_contracts.facts.values import Addresses, Member, ModelSpec, Receipt
from weft_contracts.ids import ModelId, NodeId, ReplicaId, TokenId, node_id_of
from weft_contracts.subjects import machine, model, node, replica
from weft_gateway.inbound.nodes import node_files
from weft_gateway.inbound.nodes.node_files import AT_ONCE, EVERY_S, NodeFiles
from weft_gateway.projections.directory import Directory
from weft_identity.nkey import KeyPair, Role
from weft_testing import HandLog

Fronts = Any
SPEC = ModelSpec(
    source=HfSource(repository="o/m", revision="c" * 40),
    engine="llama.cpp",
    files=(SourceFile(name="m.gguf", size=5, checksum="sha256:" + "a" * 64),),
)
FILES = files_digest(SPEC)
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0.0, refusals={}, candidates=()
)
AT = ModelId("m-1")


class World:
    """Four healthy nodes, three of which are to run one model."""

    def __init__(self) -> None:
        self.log, self.directory = HandLog(), Directory()
        self.log.listen(lambda commit: self.directory.fold([commit]))
        self.keys: dict[NodeId, KeyPair] = {}
        self.ids = [ReplicaId(f"m-1-{number}") for number in (1, 2, 3)]
        self.log.given(model(AT), SpecAccepted(name="mine", revision=1, digest="d", spec=SPEC))
        self.log.given(model(AT), Scaled(revision=1, add=tuple(self.ids), why="wanted"))
        self.a, self.b, self.c, self.stranger = (self.a_node(number) for number in range(4))
        for id, on in zip(self.ids, (self.a, self.b, self.c), strict=True):
            at: dict[str, Any] = {"model": AT, "revision": 1, "epoch": 1, "members": (_member(on),)}
            self.log.given(node(on), Assigned(replica=id, model_name="mine", digest="d", spec=SPEC, **at))
            self.log.given(replica(id), Placed(receipt=RECEIPT, **at))
        self.routers = [NodeFiles(self.directory).router]

    def a_node(self, number: int, *then: Fact) -> NodeId:
        key = KeyPair.new(Role.USER)
        id = node_id_of(key.public)
        self.keys[id] = key
        at = Addresses(host=f"10.0.0.{number}", http_port=4000 + number)
        joined = Joined(name=f"name-{number}", public_key=key.public, token=TokenId("t"), addresses=at)
        self.log.given(node(id), joined, *(then or (Approved(by="admin"), Healthy())))
        return id

    def signed(self, id: NodeId, what: str, nonce: str = "") -> dict[str, Any]:
        nonce = nonce or str(int(time.time()))
        signature = base64.b64encode(self.keys[id].sign(f"weft-{what}:{id}:{nonce}".encode())).decode()
        return {"node": id, "nonce": nonce, "signature": signature}

    def near(self, id: NodeId, files: str = FILES) -> dict[str, Any]:
        return self.signed(id, f"files-near:{files}") | {"files": files}

    def reader(self, holder: NodeId, reader: dict[str, Any], files: str = FILES) -> dict[str, Any]:
        return self.signed(holder, f"files-reader:{files}") | {"files": files, "reader": reader}

    def words(self, reader: NodeId, holder: NodeId, files: str = FILES, nonce: str = "") -> dict[str, Any]:
        return self.signed(reader, f"files:{files}:{holder}", nonce)


def _member(on: NodeId) -> Member:
    return Member(node=on, rank=0, devices=())


@pytest.fixture
def world() -> World:
    return World()


async def said(fronts: Fronts, world: World, path: str, body: Any) -> tuple[int, Any]:
    """Status and body of an answer."""
    wire = await fronts.connect(await fronts.open(routers=world.routers))
    wire.post(body, path=f"/api/node/files/{path}")
    answer = await wire.answer()
    return answer.status, answer.json()


async def peers(fronts: Fronts, world: World, id: NodeId) -> tuple[list[NodeId], bool]:
    """Whom a node is told to ask, and whether it may ask the source at once."""
    status, answer = await said(fronts, world, "near", world.near(id))
    assert 200 == status, answer
    return [each["node"] for each in answer["peers"]], answer["source_after_s"] == 0


async def test_the_first_asks_the_source_and_the_others_ask_who_goes_before(fronts: Fronts, world: World) -> None:
    assert ([], True) == await peers(fronts, world, world.a)
    assert ([world.a], False) == await peers(fronts, world, world.b)
    assert ([world.b, world.a], False) == await peers(fronts, world, world.c)
    # when the first has them, it is asked first, and where it is reached is told
    world.log.given(machine(world.a), FilesCame(files=FILES, bytes=5))
    _, answer = await said(fronts, world, "near", world.near(world.b))
    at = {"host": "10.0.0.0", "port": 4000, "whole": True}
    assert [{"node": world.a, "name": "name-0", **at}] == answer["peers"]
    _, answer = await said(fronts, world, "near", world.near(world.c))
    assert [(world.b, False), (world.a, True)] == [(each["node"], each["whole"]) for each in answer["peers"]]


async def test_who_does_not_answer_is_nobodys_peer(fronts: Fronts, world: World) -> None:
    world.log.given(node(world.a), WentOffline(silent_for=9.0))
    assert ([], True) == await peers(fronts, world, world.b)
    world.log.given(machine(world.a), FilesCame(files=FILES, bytes=5))
    assert ([], True) == await peers(fronts, world, world.b)


async def test_who_needs_no_files_is_told_nothing_of_them(fronts: Fronts, world: World) -> None:
    for id, files in ((world.stranger, FILES), (world.a, "0" * 16)):
        status, answer = await said(fronts, world, "near", world.near(id, files))
        assert (403, "files_not_assigned") == (status, answer["code"])
    # nor by words that were signed for something else
    assert 401 == (await said(fronts, world, "near", world.words(world.a, world.b) | {"files": FILES}))[0]


async def test_who_says_to_have_files_that_nothing_told_it_to_have_is_nobodys_peer(
    fronts: Fronts, world: World
) -> None:
    world.log.given(machine(world.stranger), FilesCame(files=FILES, bytes=5))
    assert ([], True) == await peers(fronts, world, world.a)
    assert ([world.a], False) == await peers(fronts, world, world.b)


async def test_of_who_is_not_approved_or_is_cut_off_nothing_is_looked_up(
    fronts: Fronts, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked_up(*_: Any) -> Any:
        raise AssertionError("looked up")

    monkeypatch.setattr(node_files, "files_needed", looked_up)
    a, b, waits = world.a, world.b, world.a_node(4, Healthy())
    world.log.given(node(b), CutOff(why="a flood"))
    for id, found in ((waits, 403), (b, 423)):
        for path, body in (
            ("near", world.near(id)),
            ("reader", world.reader(id, world.words(a, id))),
            ("reader", world.reader(a, world.words(id, a))),
        ):
            assert found == (await said(fronts, world, path, body))[0]


async def test_a_node_that_asks_too_often_comes_later_and_holds_up_nobody_else(fronts: Fronts, world: World) -> None:
    now = 100.0
    world.routers = [NodeFiles(world.directory, monotonic=lambda: now).router]
    wire = await fronts.connect(await fronts.open(routers=world.routers))

    async def asked(path: str, body: Any) -> tuple[int, str | None]:
        wire.post(body, path=f"/api/node/files/{path}")
        answer = await wire.answer()
        return answer.status, answer.headers.get("retry-after")

    a, b = world.a, world.b
    for _ in range(AT_ONCE - 1):
        assert 200 == (await asked("near", world.near(a)))[0]
    assert 200 == (await asked("reader", world.reader(a, world.words(b, a))))[0]
    for path, body in (("near", world.near(a)), ("reader", world.reader(a, world.words(b, a)))):
        assert (429, "1") == await asked(path, body)
    assert 200 == (await asked("near", world.near(b)))[0]
    now += EVERY_S
    assert [200, 429] == [(await asked("near", world.near(a)))[0] for _ in range(2)]


async def test_a_reader_is_one_that_needs_the_files_and_signed_for_this_holder(fronts: Fronts, world: World) -> None:
    a, b = world.a, world.b
    body = world.reader(a, world.words(b, a))
    status, answer = await said(fronts, world, "reader", body)
    assert (200, b, FILES) == (status, answer["reader"], answer["files"])

    # when it is to run the model no more, it is refused
    world.log.given(node(b), Unassigned(replica=world.ids[1], why="retired", deadline_s=1.0))
    assert 403 == (await said(fronts, world, "reader", body))[0]


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("a stranger", "files_not_assigned"),
        ("other files", "reader_refused"),
        ("another holder", "reader_refused"),
        ("old words", "reader_refused"),
        ("another's words", "reader_refused"),
        ("nobody", "reader_refused"),
    ],
)
async def test_whoever_else_comes_is_no_reader(fronts: Fronts, world: World, what: str, code: str) -> None:
    a, b, c = world.a, world.b, world.c
    words = {
        "a stranger": world.words(world.stranger, a),
        "other files": world.words(b, a, "0" * 16),
        "another holder": world.words(b, c),
        "old words": world.words(b, a, nonce=str(int(time.time()) - 400)),
        "another's words": world.words(c, a) | {"node": b},
        "nobody": world.words(b, a) | {"node": "n-nobody"},
    }[what]
    status, answer = await said(fronts, world, "reader", world.reader(a, words))
    assert (403, code) == (status, answer["code"]), answer


async def test_a_holder_asks_by_its_own_signature_and_who_is_cut_off_gets_nothing(fronts: Fronts, world: World) -> None:
    a, b = world.a, world.b
    body = world.reader(a, world.words(b, a))
    assert 401 == (await said(fronts, world, "reader", body | {"signature": body["reader"]["signature"]}))[0]
    world.log.given(node(b), CutOff(why="a flood"))
    assert 423 == (await said(fronts, world, "reader", body))[0]
    assert 423 == (await said(fronts, world, "near", world.near(b)))[0]


async def test_the_last_copy_of_what_was_sent_may_not_go_and_every_other_may(fronts: Fronts, world: World) -> None:
    async def may_go(id: NodeId, files: str) -> bool:
        body = world.signed(id, f"files-going:{files}") | {"files": files}
        status, answer = await said(fronts, world, "going", body)
        assert 200 == status, answer
        return answer["may_go"]

    world.log.given(machine(world.a), FilesCame(files=FILES, bytes=5))
    assert await may_go(world.a, FILES), "its source has it"
    sent = SPEC.model_copy(update={"source": UploadSource(name="m.gguf")})
    sent = sent.model_copy(update={"files": (SourceFile(name="m.gguf", size=5, checksum="blake3:" + "b" * 64),)})
    world.log.given(model(AT), SpecAccepted(name="mine", revision=2, digest="e", spec=sent))
    assert not await may_go(world.a, files_digest(sent))
    # and only a node's own words count
    assert 401 == (await said(fronts, world, "going", world.near(world.a)))[0]
