"""`/api/status`: a look that was kept says what one made anew would, the page's is bounded, the tag tells a change."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import httpx
import jsonschema_rs
import pytest
import weft_api
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.facts.machine import FilesCame, FilesFailed
from weft_contracts.facts.model import Deleted, Scaled, SpecAccepted, Unservable
from weft_contracts.facts.node import (
    Approved,
    Assigned,
    FilesWanted,
    Healthy,
    Joined,
    Rejoined,
    Removed,
    Unassigned,
    Unhealthy,
)
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Loading, Ready, Stopped
from weft_contracts.facts.source import HfSource, SimulatedSource
from weft_contracts.facts.values import Addresses, DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId, TokenId, replica_id
from weft_contracts.signals import NO_REPLICA, FetchSaid, MemorySaid, NodeProgress
from weft_contracts.subjects import machine, model, node, replica, run
from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.inbound.admin.rendered import NODES_SHOWN, REPLICAS_SHOWN, Rendered
from weft_gateway.inbound.admin.status import Status
from weft_gateway.projections.directory import Directory
from weft_testing import HandLog
from weft_testing.answer_schemas import schema_of

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="t", decided_at=0.0, refusals={}, candidates=()
)
ADDRESSES = Addresses(host="127.0.0.1", http_port=1)
NODES, MODELS = (NodeId("n-1"), NodeId("n-2")), (ModelId("m-1"), ModelId("m-2"))


def joined(name: str) -> Joined:
    return Joined(name=name, public_key="U", token=TokenId("t"), addresses=ADDRESSES)


def steps_of(on: NodeId, of: ModelId) -> list[tuple[Any, Any]]:
    """What can happen to a node, a model, and a replica of the one on the other."""
    one, two = replica_id(of, 1), replica_id(of, 2)
    member = Member(node=on, rank=0, devices=(DeviceClaim(index=0, bytes=7),))
    assigned = Assigned(
        replica=one, model=of, model_name=of, revision=1, digest="d", epoch=1, members=(member,), spec=SPEC
    )
    said = Incarnation("i")
    return [
        (node(on), joined(f"{on}-name")),
        (node(on), Rejoined(addresses=ADDRESSES.model_copy(update={"http_port": 2}))),
        (node(on), Approved(by="t")),
        (node(on), Healthy()),
        (node(on), Unhealthy(silent_for=5)),
        (node(on), Removed(why="x")),
        (model(of), SpecAccepted(name=f"{of}-name", revision=1, digest="d", spec=SPEC)),
        (model(of), Scaled(revision=1, add=(one, two), why="w")),
        (model(of), Scaled(revision=1, retire=(one,), why="w")),
        (model(of), Unservable(revision=1, reason="r")),
        (model(of), Deleted()),
        (replica(one), Placed(model=of, revision=1, epoch=1, members=(member,), receipt=RECEIPT)),
        (node(on), assigned),
        (node(on), Unassigned(replica=one, deadline_s=1, why="w")),
        (run(on, one), Loading(epoch=1, incarnation=said)),
        (run(on, one), Ready(epoch=1, incarnation=said, port=1, engine="simulated", engine_version="1")),
        (run(on, one), Stopped(epoch=1, why="retired")),
    ]


STEPS = [step for on, of in zip(NODES, MODELS, strict=True) for step in steps_of(on, of)]
EJECTED: tuple[dict[ReplicaId, str], ...] = (
    {},
    {replica_id(MODELS[0], 1): "retiring"},
    {replica_id(MODELS[0], 1): "busy", ReplicaId("m-9-1"): "gone"},
)

BEGINNING = (Joined, Approved, Healthy, SpecAccepted, Placed, Assigned, Loading)


def said(rendered: Rendered) -> tuple[Any, Any, tuple[str, ...]]:
    return json.loads(b"{%s}" % rendered.whole()), json.loads(b"{%s}" % rendered.page()), rendered.problems


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(EJECTED), st.booleans()), max_size=40))
def test_a_look_that_was_kept_says_what_one_made_anew_would(told: list[tuple[Any, Any, bool]]) -> None:
    directory, log = Directory(), HandLog()
    kept = Rendered(directory)
    directory.fold(
        [
            log.given(aggregate, fact)
            for aggregate, fact in STEPS
            if isinstance(fact, BEGINNING) or getattr(fact, "add", ())
        ]
    )
    for (aggregate, fact), ejected, looked in told:
        directory.fold([log.given(aggregate, fact)])
        if looked:
            kept.update(ejected)
            anew = Rendered(directory)
            anew.update(ejected)
            assert said(anew) == said(kept)


TYPES: dict[str, Any] = {"nodes": weft_api.Node, "models": weft_api.Model, "replicas": weft_api.ShownReplica}
LINES: dict[str, Any] = {**TYPES, "replicas": weft_api.ShownReplicaLine}


@cache
def validator(kind: Any) -> Any:
    return jsonschema_rs.validator_for(schema_of(kind))


def faults(kind: Any, answer: Any) -> list[str]:
    """What of an answer is not as its type has it."""
    return [error.message for error in validator(kind).iter_errors(answer)]


@settings(max_examples=50)
@given(st.lists(st.sampled_from(STEPS), max_size=40))
def test_every_piece_of_a_look_is_of_its_type(told: list[tuple[Any, Any]]) -> None:
    directory, log = Directory(), HandLog()
    directory.fold([log.given(aggregate, fact) for aggregate, fact in [*STEPS[:12], *told]])
    rendered = Rendered(directory)
    rendered.update(EJECTED[1])
    whole, page, _ = said(rendered)
    for look, types in ((whole, TYPES), (page, LINES)):
        for name, kind in types.items():
            assert [] == faults(list[kind], look[name])


def grown(nodes: int, replicas: int) -> tuple[Directory, HandLog]:
    """A fleet with one model; the last node and the last replica need an eye."""
    directory, log, of = Directory(), HandLog(), MODELS[0]
    for number in range(nodes):
        aggregate = node(NodeId(f"n-{number:03}"))
        presence = Unhealthy(silent_for=5) if number == nodes - 1 else Healthy()
        directory.fold([log.given(aggregate, joined(f"node-{number:03}"), Approved(by="t"), presence)])
    directory.fold([log.given(model(of), SpecAccepted(name="m", revision=1, digest="d", spec=SPEC))])
    for number in range(1, replicas + 1):
        one, on = replica_id(of, number), NodeId("n-000")
        member = Member(node=on, rank=0, devices=(DeviceClaim(index=0, bytes=7),))
        assigned = Assigned(
            replica=one, model=of, model_name="m", revision=1, digest="d", epoch=1, members=(member,), spec=SPEC
        )
        told: list[tuple[Any, Any]] = [
            (model(of), Scaled(revision=1, add=(one,), why="w")),
            (replica(one), Placed(model=of, revision=1, epoch=1, members=(member,), receipt=RECEIPT)),
            (node(on), assigned),
            (run(on, one), Loading(epoch=1, incarnation=Incarnation("i"))),
        ]
        if number < replicas:
            ready = Ready(epoch=1, incarnation=Incarnation("i"), port=1, engine="simulated", engine_version="1")
            told.append((run(on, one), ready))
        directory.fold([log.given(aggregate, fact) for aggregate, fact in told])
    return directory, log


def test_the_pages_look_is_bounded_and_begins_with_what_needs_an_eye() -> None:
    directory, _ = grown(60, 20)
    rendered = Rendered(directory)
    rendered.update({})
    page = json.loads(b"{%s}" % rendered.page())
    assert NODES_SHOWN == len(page["nodes"])
    assert ("node-059", "unhealthy") == (page["nodes"][0]["name"], page["nodes"][0]["state"])
    assert REPLICAS_SHOWN == len(page["replicas"])
    assert "loading" == page["replicas"][0]["state"]
    assert {"healthy": 59, "unhealthy": 1} == page["counts"]["nodes"]
    assert ({"ready": 1}, {MODELS[0]: 20}) == (page["counts"]["models"], page["counts"]["replicas"])
    assert {"replicas": 20, "bytes": 140} == page["claims"]["n-000"]
    assert 7 == page["replicas"][0]["bytes"]


@pytest.fixture
async def asked() -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    """A client of the route, and what it is made from."""
    directory, log = grown(3, 2)
    caught_up = asyncio.Event()
    world: Any = SimpleNamespace(
        directory=directory, log=log, running={}, problems={}, ejected={}, full=None, board=ProgressBoard(), lacks={}
    )
    none = SimpleNamespace(total=0)
    pool = SimpleNamespace(ejections=lambda: world.ejected)
    dispatcher: Any = SimpleNamespace(in_flight=world.running, queue=none, loading=none, pool=pool)
    projection: Any = SimpleNamespace(position=1, caught_up=caught_up, halted=None)
    health: Any = SimpleNamespace(problems=world.problems, ready=True)
    room: Any = SimpleNamespace(problem=lambda: world.full)
    status = Status(
        "gw",
        directory,
        projection,
        dispatcher,
        health,
        lambda: True,
        lambda: {"state": "off", "position": 0},
        room,
        world.board,
        lambda: world.lacks,
    )
    app = FastAPI()
    app.include_router(status.router)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gw") as client:
        yield client, world


@pytest.mark.parametrize("path", ["/api/status", "/api/status?view=page"])
async def test_a_log_without_room_is_the_first_trouble(asked: tuple[httpx.AsyncClient, Any], path: str) -> None:
    client, world = asked
    assert (await client.get(path)).json()["log"]["full"] is None

    world.full, world.problems["x"] = "the disk is full", "something else"
    said = (await client.get(path)).json()

    assert ("degraded", "the disk is full") == (said["mesh"]["health"], said["log"]["full"])
    assert ["the disk is full", "something else"] == said["mesh"]["problems"][:2]


@pytest.mark.parametrize("path", ["/api/status", "/api/status?view=page"])
async def test_the_tag_changes_with_whatever_is_said(asked: tuple[httpx.AsyncClient, Any], path: str) -> None:
    client, world = asked

    async def changed(tag: str) -> str:
        answer = await client.get(path, headers={"if-none-match": tag})
        if answer.status_code == 304:
            assert b"" == answer.content
            return ""
        assert 200 == answer.status_code
        return answer.headers["etag"]

    tag = await changed("")
    assert "" == await changed(tag)
    # a fact, a request, a trouble of the gateway's own, a replica that takes nothing
    world.directory.fold([world.log.given(node(NodeId("n-000")), Unhealthy(silent_for=5))])
    after = await changed(tag)
    world.running["r"] = object()
    running = await changed(after)
    world.problems["a"] = "the log is halted"
    troubled = await changed(running)
    world.ejected[replica_id(MODELS[0], 1)] = "retiring"
    ejected = await changed(troubled)
    # and what a node says of a replica beside the log
    memory = MemorySaid(replica=replica_id(MODELS[0], 1), device=0, used=3)
    said = NodeProgress(node=NodeId("n-000"), memory=(memory,))
    world.board.heard(said.node, said, 0.0)
    held = await changed(ejected)
    assert 6 == len({tag, after, running, troubled, ejected, held} - {""})
    world.board.heard(said.node, said, 1.0)
    assert "" == await changed(held)


@pytest.mark.parametrize("path", ["/api/status", "/api/status?view=page"])
async def test_why_a_models_prompts_are_not_made_here_is_told_and_changes_the_tag(
    asked: tuple[httpx.AsyncClient, Any], path: str
) -> None:
    client, world = asked
    before = await client.get(path)
    world.lacks = {MODELS[0]: "tokenizer.json of m can't be had"}
    after = await client.get(path)
    assert ({}, world.lacks) == (before.json()["no_tokenizer"], after.json()["no_tokenizer"])
    assert before.headers["etag"] != after.headers["etag"]


async def test_what_nodes_are_to_have_and_lack_is_told_with_the_reason(asked: tuple[httpx.AsyncClient, Any]) -> None:
    client, world = asked
    first, second = NodeId("n-000"), NodeId("n-001")

    def told(aggregate: Any, fact: Any) -> None:
        world.directory.fold([world.log.given(aggregate, fact)])

    async def ahead() -> list[tuple[str, str, str]]:
        found = (await client.get("/api/status")).json()["files_ahead"]
        return [(each["node"], each["state"], each["about"]) for each in found]

    wanted = FilesWanted(files="f1", source=HfSource(repository="o/r"), listed=(), bytes=100, model_name="m")
    assert [] == await ahead()
    told(node(first), wanted)
    told(node(second), wanted)
    assert [(first, "wanted", "not begun yet"), (second, "wanted", "not begun yet")] == await ahead()
    # one that can't be had is first, one that waits says for what
    told(machine(second), FilesFailed(files="f1", reason="hf:o/r could not be fetched: the hub is away"))
    other = FetchSaid(replica=NO_REPLICA, files="f2", source="hf:o/x", phase="fetching", total=9)
    world.board.heard(first, NodeProgress(node=first, fetches=(other,)), 0.0)
    failed = "the last try failed: hf:o/r could not be fetched: the hub is away"
    assert [(second, "failed", failed), (first, "wanted", "other models are fetched first")] == await ahead()
    # one whose node is away says so, and what came is gone from here
    told(node(first), Unhealthy(silent_for=5))
    told(machine(second), FilesCame(files="f1", bytes=100))
    world.board.heard(first, NodeProgress(node=first), 1.0)
    assert [(first, "wanted", "its node is unhealthy")] == await ahead()
    assert "files_ahead" not in (await client.get("/api/status?view=page")).json()


async def test_the_page_is_not_told_each_nodes_trouble_as_a_sentence(asked: tuple[httpx.AsyncClient, Any]) -> None:
    client, world = asked
    world.problems["a"] = "the log is halted"
    whole, page = [(await client.get(f"/api/status?view={view}")).json()["mesh"] for view in ("all", "page")]
    assert ["the log is halted", "node node-002 is unhealthy"] == whole["problems"]
    assert ("degraded", ["the log is halted"]) == (page["health"], page["problems"])
    assert 422 == (await client.get("/api/status?view=none")).status_code


@pytest.mark.parametrize(
    ("path", "kind"), [("/api/status", weft_api.Status), ("/api/status?view=page", weft_api.StatusPage)]
)
async def test_a_look_is_of_its_type_and_a_renamed_field_is_a_fault(
    asked: tuple[httpx.AsyncClient, Any], path: str, kind: Any
) -> None:
    # given a look that fits its type, field by field
    client, _ = asked
    look = (await client.get(path)).json()
    assert [] == faults(kind, look)
    # when a field of it bears another name
    look["replicas"][0]["on_node"] = look["replicas"][0].pop("node_name")
    # then it is told that the one is missing and the other is none of its type's
    told = " ".join(faults(kind, look))
    assert '"node_name"' in told
    assert "on_node" in told
