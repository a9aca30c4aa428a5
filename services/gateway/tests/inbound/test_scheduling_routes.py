"""Numbers and nodes of a model over HTTP: what is said is asked for, what isn't stays, and what can't be is refused."""

from typing import Any

import pytest
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.request import Fulfilled, SchedulingRequested
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId
from weft_contracts.subjects import model
from weft_gateway.inbound.admin.node_labels import NodeLabels
from weft_gateway.inbound.admin.scheduling import PATHS, SchedulingOfModels
from weft_gateway.projections.directory import Directory
from weft_testing import HandLog

Fronts = Any
TEAM, PLAIN = ModelId("m-1"), ModelId("m-2")
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated", selector={"gpu": "yes"}, min_replicas=2, max_replicas=4)
SHOWN = {
    "model_name": "team/chat",
    "model": TEAM,
    "revision": 1,
    "node_selector": {"gpu": "yes"},
    "min_replicas": 2,
    "max_replicas": 4,
    "spread_all": False,
    "max_surge": 1,
    "max_unavailable": 0,
    "progress_s": 14_400.0,
    "scaling": {},
}


class World:
    """Two models; whoever answers fulfils all and changes nothing."""

    def __init__(self) -> None:
        self.log, self.directory = HandLog(), Directory()
        self.log.listen(lambda commit: self.directory.fold([commit]))
        self.asked: list[Any] = []
        for id, called in ((TEAM, "team/chat"), (PLAIN, "plain")):
            self.log.given(model(id), SpecAccepted(name=called, revision=1, digest="d", spec=SPEC))
        asking: Any = self
        # as in the app: before what stands under a node's name
        self.routers = [SchedulingOfModels(self.directory, asking).router, NodeLabels(self.directory, asking).router]

    async def ask(self, request: Any, fact: Any) -> Any:
        self.asked.append(fact)

        class View:
            id = "q-1"
            outcome = Fulfilled(result={})

        return View


@pytest.fixture
def world() -> World:
    return World()


async def said(fronts: Fronts, world: World, method: str, path: str, body: Any = b"") -> tuple[int, Any]:
    front = await fronts.open(routers=world.routers)
    wire = await fronts.connect(front)
    wire.send(wire.request(body, path=path).replace(b"POST", method.encode(), 1))
    answer = await wire.answer()
    return answer.status, answer.json()


@pytest.mark.parametrize("path", PATHS)
async def test_each_model_has_one_listed_by_name(fronts: Fronts, world: World, path: str) -> None:
    _, page = await said(fronts, world, "GET", f"{path}?limit=1")
    assert (["plain"], "plain") == ([each["model_name"] for each in page["items"]], page["next"])
    _, rest = await said(fronts, world, "GET", f"{path}?after=plain")
    assert {"items": [SHOWN], "next": None} == rest
    assert (200, SHOWN) == await said(fronts, world, "GET", f"{path}/team/chat")
    assert (200, SHOWN) == await said(fronts, world, "GET", f"{path}/{TEAM}")


@pytest.mark.parametrize(("method", "path"), [("POST", ""), *((m, "/team/chat") for m in ("POST", "PUT", "PATCH"))])
@pytest.mark.parametrize("under", PATHS)
async def test_only_what_is_said_is_asked_for(fronts: Fronts, world: World, method: str, path: str, under: str) -> None:
    body = {"model_name": "team/chat", "max_replicas": 0, "min_replicas": None}
    status, answer = await said(fronts, world, method, f"{under}{path}", body)
    assert (200, {"request": "q-1", **SHOWN}) == (status, answer)
    assert [SchedulingRequested(model=TEAM, max_replicas=0)] == world.asked


async def test_all_that_can_be_said_is_asked_for(fronts: Fronts, world: World) -> None:
    rules: dict[str, Any] = {"max_surge": 2, "max_unavailable": 1, "progress_s": 60.0}
    rules["scaling"] = {"down_after_s": 60.0, "spare": 0.5}
    body = {"model_name": "plain", "node_selector": {"!old": ""}, "spread_all": True, **rules}
    await said(fronts, world, "POST", "/api/scheduling", body)
    told = {"model": PLAIN, "selector": {"!old": ""}, "spread_all": True, **rules}
    assert [SchedulingRequested.model_validate(told)] == world.asked


async def test_a_reset_is_one_replica_on_any_node(fronts: Fronts, world: World) -> None:
    assert 200 == (await said(fronts, world, "DELETE", "/api/nodes/scheduling/plain"))[0]
    numbers: dict[str, Any] = {"selector": {}, "min_replicas": 1, "max_replicas": 1, "spread_all": False}
    rules: dict[str, Any] = {"max_surge": 1, "max_unavailable": 0, "progress_s": 14_400.0, "scaling": {}}
    assert [SchedulingRequested.model_validate({"model": PLAIN, **numbers, **rules})] == world.asked


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("", {"min_replicas": 1}, 400, "`model_name` is missing"),
        ("", {"model_name": "nobody", "min_replicas": 1}, 404, "nobody"),
        ("/nobody", {"min_replicas": 1}, 404, "nobody"),
        ("/plain", {"model_name": "team/chat"}, 400, "`model_name` is 'team/chat', and the path names 'plain'"),
        ("/plain", {"min_replicas": -1}, 400, "min_replicas"),
        ("/plain", {"max_surge": -1}, 400, "max_surge"),
        ("/plain", {"progress_s": "soon"}, 400, "progress_s"),
        ("/plain", {"scaling": {"down_after_s": 0}}, 400, "scaling.down_after_s"),
        ("/plain", {"scaling": {"down_afterwards": 9}}, 400, "scaling.down_afterwards"),
        ("/plain", {"replicas": 1}, 400, "replicas"),
        ("/plain", {"spread_all": True, "min_replicas": 2}, 400, "`spread_all` goes with neither"),
        ("/plain", {"spread_all": True, "max_replicas": 0}, 400, "`spread_all` goes with neither"),
        ("/plain", {"route_policy": ""}, 400, "`route_policy` does not fit: routing has none of"),
        ("/plain", {"balance_abs_threshold": 3}, 400, "routing has none of"),
        ("/plain", {"balance_rel_threshold": 1.5}, 400, "routing has none of"),
        ("/plain", {"min_prefix_match": 0.3}, 400, "routing has none of"),
    ],
)
async def test_what_can_t_be_meant_is_refused_with_what_is_wrong(
    fronts: Fronts, world: World, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    found, answer = await said(fronts, world, "PUT" if path else "POST", f"/api/scheduling{path}", body)
    assert status == found, answer
    assert words in answer["detail"]
    unsaid = ("route_policy", "balance_abs_threshold", "balance_rel_threshold", "min_prefix_match")
    assert all(name in answer["detail"] for name in unsaid if name in body)
    assert [] == world.asked


async def test_a_model_called_as_what_nodes_have_is_not_taken_for_it(fronts: Fronts, world: World) -> None:
    status, answer = await said(fronts, world, "PATCH", "/api/nodes/scheduling/labels", {"min_replicas": 1})
    assert 404 == status
    assert "model" in answer["detail"].lower()
