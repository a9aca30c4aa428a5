"""Aliases over HTTP: what is asked for names models, and what is shown says how these stand."""

from typing import Any

import pytest
from weft_contracts.aliases import MOST_TARGETS, MOST_WEIGHT, AliasTarget
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.name import Aliased
from weft_contracts.facts.request import AliasRemovalRequested, AliasRequested, Fulfilled
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId
from weft_contracts.subjects import model, name
from weft_gateway.inbound.admin.aliases import Aliases
from weft_gateway.projections.directory import Directory
from weft_testing import HandLog

Fronts = Any
LOCAL, CLOUD, GONE = ModelId("m-1"), ModelId("m-2"), ModelId("m-gone")
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")


class World:
    """Two models and an alias of one that is there and one that isn't; a reconciler that fulfils all it is asked."""

    def __init__(self) -> None:
        self.log, self.directory = HandLog(), Directory()
        self.log.listen(lambda commit: self.directory.fold([commit]))
        self.asked: list[Any] = []
        for id, called in ((LOCAL, "org/local"), (CLOUD, "cloud")):
            self.log.given(model(id), SpecAccepted(name=called, revision=1, digest="d", spec=SPEC))
        targets = (AliasTarget(model=LOCAL, weight=3), AliasTarget(model=GONE))
        self.log.given(name("model", "chat"), Aliased(name="chat", rule="weights", targets=targets))
        asking: Any = self
        self.routers = [Aliases(self.directory, asking).router]

    async def ask(self, request: Any, fact: Any) -> Any:
        self.asked.append(fact)

        class View:
            id = "q-1"
            outcome = Fulfilled(result={"alias": fact.name})

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


async def test_models_are_asked_for_by_name_or_id_in_their_order(fronts: Fronts, world: World) -> None:
    body = {"rule": "order", "targets": [{"model": "cloud"}, {"model": LOCAL, "weight": 7}]}
    status, answer = await said(fronts, world, "PUT", "/api/aliases/team/chat", body)
    assert (200, {"request": "q-1", "alias": "team/chat"}) == (status, answer)
    targets = (AliasTarget(model=CLOUD), AliasTarget(model=LOCAL, weight=7))
    assert [AliasRequested(name="team/chat", rule="order", targets=targets)] == world.asked


@pytest.mark.parametrize(
    ("called", "targets", "status", "words"),
    [
        ("new", [{"model": "chat"}], 422, "an alias itself"),
        ("new", [{"model": "cloud"}, {"model": "nobody"}], 422, "`targets[1].model` is 'nobody'"),
        ("new", [], 400, "targets"),
        ("new", [{"model": "cloud"}] * (MOST_TARGETS + 1), 400, "targets"),
        ("new", [{"model": "cloud", "weight": 0}], 400, "weight"),
        ("new", [{"model": "cloud", "weight": MOST_WEIGHT + 1}], 400, "weight"),
        ("new", [{"model": "cloud", "share": 1}], 400, "share"),
        ("-new", [{"model": "cloud"}], 400, "name"),
    ],
)
async def test_what_can_t_be_meant_is_refused_with_what_is_wrong(
    fronts: Fronts, world: World, called: str, targets: list[dict[str, Any]], status: int, words: str
) -> None:
    found, answer = await said(fronts, world, "PUT", f"/api/aliases/{called}", {"targets": targets})
    assert status == found, answer
    assert words in answer["detail"]
    assert [] == world.asked


async def test_an_alias_shows_its_models_and_how_they_stand(fronts: Fronts, world: World) -> None:
    _, page = await said(fronts, world, "GET", "/api/aliases?limit=1")
    (shown,) = page["items"]
    assert ("chat", "weights", None) == (shown["name"], shown["rule"], page["next"])
    assert [("org/local", 3, "placing"), (GONE, 1, "deleted")] == [
        (each["model"], each["weight"], each["state"]) for each in shown["targets"]
    ]
    assert (200, shown) == await said(fronts, world, "GET", "/api/aliases/chat")


async def test_an_alias_is_removed_by_its_name_and_a_model_s_name_is_none(fronts: Fronts, world: World) -> None:
    assert 200 == (await said(fronts, world, "DELETE", "/api/aliases/chat"))[0]
    assert [AliasRemovalRequested(name="chat")] == world.asked
    status, answer = await said(fronts, world, "DELETE", "/api/aliases/cloud")
    assert (404, "Alias 'cloud' does not exist; there is: chat.") == (status, answer["detail"])
