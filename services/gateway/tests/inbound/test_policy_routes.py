"""Placement policies over HTTP: what is asked for is checked field by field, and what is shown says who goes by it."""

from typing import Any

import pytest
from weft_contracts.facts.mesh import PolicyChosen, PolicySet
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.request import (
    DeployRequested,
    Fulfilled,
    PolicyChoiceRequested,
    PolicyRequested,
    PolicyWithdrawalRequested,
)
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId
from weft_contracts.policies import PlacementPolicy, PolicyWeights
from weft_contracts.subjects import MESH, model
from weft_gateway.inbound.admin.models import Models
from weft_gateway.inbound.admin.policies import Policies
from weft_gateway.inbound.admin.remedy_search import RemedySearch
from weft_gateway.projections.directory import Directory
from weft_placement import BALANCED
from weft_placement.policy import policy_made_of
from weft_testing import HandLog

Fronts = Any
NIGHT = PlacementPolicy(name="night", apart="nodes", slots=8, weights=PolicyWeights(binpack=1, files=0.5))
WEIGHTS = {"idle": 0.0, "binpack": 1.0, "spread": 0.0, "snug": 0.0, "files": 0.5, "devices": 0.0}
BODY: dict[str, Any] = {"apart": "nodes", "slots": 8, "weights": {"binpack": 1, "files": 0.5}}


class World:
    """The mesh goes by a policy that was told, and a model names another; a registry that fulfils all it is asked."""

    def __init__(self) -> None:
        self.log, self.directory = HandLog(), Directory()
        self.log.listen(lambda commit: self.directory.fold([commit]))
        self.asked: list[Any] = []
        spec = ModelSpec(source=SimulatedSource(), engine="simulated", policy="spread")
        self.log.given(model(ModelId("m-1")), SpecAccepted(name="wide", revision=1, digest="d", spec=spec))
        self.log.given(MESH, PolicySet(policy=NIGHT), PolicyChosen(name="night"))
        asking: Any = self
        lists: Any = None
        self.routers = [
            Policies(self.directory, asking).router,
            Models(self.directory, asking, lists, RemedySearch(), tuple).router,
        ]

    async def ask(self, request: Any, fact: Any, *_: Any, **__: Any) -> Any:
        self.asked.append(fact)

        class View:
            id = "q-1"
            outcome = Fulfilled(result={"policy": getattr(fact, "name", "night")})

        return View


@pytest.fixture
def world() -> World:
    return World()


async def said(fronts: Fronts, world: World, method: str, path: str, body: Any = b"") -> tuple[int, Any]:
    """Status and body of an answer, from the world's own directory."""
    front = await fronts.open(routers=world.routers)
    wire = await fronts.connect(front)
    wire.send(wire.request(body, path=path).replace(b"POST", method.encode(), 1))
    answer = await wire.answer()
    return answer.status, answer.json()


async def test_policies_are_listed_by_name_with_what_receipts_call_them_and_who_goes_by_them(
    fronts: Fronts, world: World
) -> None:
    _, page = await said(fronts, world, "GET", "/api/policies")
    assert ["balanced", "binpack", "night", "spread"] == [each["name"] for each in page["items"]]
    shown = {each["name"]: each for each in page["items"]}
    assert {
        "name": "night",
        "digest": policy_made_of(NIGHT).digest,
        "builtin": False,
        "default": True,
        "apart": "nodes",
        "slots": 8,
        "weights": WEIGHTS,
        "models": [],
    } == shown["night"]
    assert PolicyWeights.model_fields.keys() == shown["night"]["weights"].keys()
    assert (True, False, BALANCED.digest) == tuple(shown["balanced"][name] for name in ("builtin", "default", "digest"))
    assert ["wide"] == shown["spread"]["models"]
    assert (200, shown["spread"]) == await said(fronts, world, "GET", "/api/policies/spread")


async def test_a_page_ends_where_it_was_asked_to_and_the_next_goes_on(fronts: Fronts, world: World) -> None:
    _, first = await said(fronts, world, "GET", "/api/policies?limit=3")
    assert ("night", ["balanced", "binpack", "night"]) == (first["next"], [each["name"] for each in first["items"]])
    _, rest = await said(fronts, world, "GET", "/api/policies?limit=3&after=night")
    assert (None, ["spread"]) == (rest["next"], [each["name"] for each in rest["items"]])


async def test_what_is_asked_for_reaches_the_registry(fronts: Fronts, world: World) -> None:
    for method, path, body, fact in (
        ("PUT", "/api/policies/night", BODY, PolicyRequested(policy=NIGHT)),
        ("POST", "/api/policies/binpack/default", b"", PolicyChoiceRequested(name="binpack")),
        ("DELETE", "/api/policies/night", b"", PolicyWithdrawalRequested(name="night")),
    ):
        status, answer = await said(fronts, world, method, path, body)
        assert (200, "q-1") == (status, answer["request"]), answer
        assert fact == world.asked[-1]


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        ("Night", {}, "`name`"),
        ("night", {"apart": "racks"}, "`apart`"),
        ("night", {"slots": 0}, "`slots`"),
        ("night", {"name": "night"}, "`name` is not a field"),
        ("night", {"weights": {}}, "`weights`"),
        ("night", {"weights": {"idle": 0}}, "`weights`"),
        ("night", {"weights": {"idle": -1}}, "`weights.idle`"),
        ("night", {"weights": {"idle": 1001}}, "`weights.idle`"),
        ("night", {"weights": {"idel": 1}}, "`weights.idel` is not a field"),
    ],
)
async def test_what_makes_no_policy_is_refused_by_its_field(
    fronts: Fronts, world: World, name: str, changed: dict[str, Any], words: str
) -> None:
    status, answer = await said(fronts, world, "PUT", f"/api/policies/{name}", BODY | changed)
    assert 400 == status, answer
    assert words in answer["detail"]
    assert [] == world.asked


async def test_a_policy_that_is_not_there_is_not_found_and_those_that_are_there_are_named(
    fronts: Fronts, world: World
) -> None:
    for method, path in (("GET", "none"), ("DELETE", "none"), ("POST", "none/default")):
        status, answer = await said(fronts, world, method, f"/api/policies/{path}")
        why = "Policy 'none' does not exist; there is: balanced, binpack, night, spread."
        assert (404, why, "policy_not_found") == (status, answer["detail"], answer["code"])
    assert [] == world.asked


async def test_a_deploy_says_by_which_policy_its_replicas_are_placed(fronts: Fronts, world: World) -> None:
    body = {"name": "m", "spec": {"source": {"kind": "simulated"}, "engine": "simulated", "policy": "night"}}
    await said(fronts, world, "POST", "/api/models", body)
    (asked,) = world.asked
    assert isinstance(asked, DeployRequested)
    assert "night" == asked.spec.policy
    wrong = body | {"spec": {"source": {"kind": "simulated"}, "engine": "simulated", "policy": "At night"}}
    status, answer = await said(fronts, world, "POST", "/api/models", wrong)
    assert (400, True) == (status, "`spec.policy`" in answer["detail"]), answer
