"""`POST /api/plans`: models on the mesh as it is, and what is wrong with a document, over HTTP."""

import asyncio
from typing import Any

import pytest
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_contracts.formats import WORKERS_READ
from weft_contracts.ids import NodeId
from weft_contracts.subjects import Aggregate, machine, node
from weft_gateway.inbound.admin.plans import Plans
from weft_gateway.projections.directory import Directory
from weft_placement.set_aside import REASON
from weft_testing.fleet_log import FleetLog

Fronts = Any
GIB = 1 << 30
HEADER = Weights(format="gguf", weight_bytes=2 * GIB, kv_bytes_per_token=1000, layers=2, heads=2, kv_heads=2)


class World:
    """A node that reads all that assignments say, and a model with a replica that waits."""

    def __init__(self) -> None:
        self.log, self.directory = FleetLog(), Directory()
        self.log.listen(lambda commit: self.directory.fold([commit]))
        id = self.log.node("a", 64 * GIB, 8 * GIB)
        hardware = self.log.fleet.nodes[id].hardware
        assert hardware is not None
        backends = self.log.fleet.nodes[id].backends
        reads = dict(WORKERS_READ)
        self.log.add(
            machine(id), Reported(hardware=hardware, backends=backends, builtins=(), agent_version="1", reads=reads)
        )
        spec = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": GIB})
        self.log.model("toy", spec, replicas=1)
        self.suspects: tuple[Aggregate, ...] = ()
        self.routers = [Plans(self.directory, lambda: self.suspects).router]


async def said(fronts: Fronts, world: World, body: Any) -> tuple[int, dict[str, Any]]:
    front = await fronts.open(routers=world.routers)
    wire = await fronts.connect(front)
    wire.send(wire.request(body, path="/api/plans"))
    answer = await wire.answer()
    return answer.status, answer.json()


async def test_without_a_document_the_meshs_own_waiting_replicas_are_planned(fronts: Fronts) -> None:
    world = World()
    status, plan = await said(fronts, world, {})
    assert (200, world.directory.fleet.position) == (status, plan["position"])
    (placed,) = plan["placements"]
    assert ("toy", 1, "balanced", ["a"]) == (
        placed["model"],
        placed["replica"],
        placed["policy"],
        [member["node"] for member in placed["members"]],
    )
    assert [] == plan["refused"]


async def test_a_document_is_planned_by_the_headers_that_go_with_it_and_by_the_policy_that_is_asked_for(
    fronts: Fronts,
) -> None:
    document = {"models": [{"name": "m", "path": "m.gguf"}, {"name": "huge", "claim": {"vram": "1TiB"}}]}
    body = {"document": document, "weights": {"m.gguf": HEADER.model_dump(mode="json")}, "policy": "binpack"}
    status, plan = await said(fronts, World(), body)
    assert 200 == status, plan
    assert [("m", "binpack")] == [(each["model"], each["policy"]) for each in plan["placements"]]
    assert ["huge"] == [each["model"] for each in plan["refused"]]


async def test_a_node_that_is_set_aside_takes_nothing_in_a_plan(fronts: Fronts) -> None:
    world = World()
    world.suspects = (node(NodeId("n-a")),)
    _, plan = await said(fronts, world, {})
    (refused,) = plan["refused"]
    assert REASON in refused["reason"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"document": {"nodes": [{"id": "x"}]}}, 400, "nodes: is of the mesh"),
        ({"document": {"models": [{"name": "m", "path": "n.gguf"}]}}, 400, "models[0].path: n.gguf: its header"),
        ({"policy": "odd"}, 400, "policy: odd is none"),
        ({"documents": {}}, 400, "documents"),
    ],
)
async def test_what_is_wrong_is_told_with_its_field(fronts: Fronts, body: Any, status: int, words: str) -> None:
    told, problem = await said(fronts, World(), body)
    assert status == told
    assert words in str(problem)


async def test_one_plan_is_computed_at_a_time(fronts: Fronts) -> None:
    world = World()
    many = {"document": {"models": [{"name": "m", "replicas": 200, "engine": "llama.cpp", "claim": {"vram": 1}}]}}
    answers = await asyncio.gather(said(fronts, world, many), said(fronts, world, many))
    assert 200 in [status for status, _ in answers]
    for status, problem in answers:
        assert status == 200 or (503, True) == (status, "ask again" in problem["detail"])
