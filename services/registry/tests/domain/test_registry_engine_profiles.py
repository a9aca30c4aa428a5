"""What an admin tells the mesh of engines: set, replaced and withdrawn, and never a built-in one."""

import pytest
from weft_contracts import subjects
from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.mesh import BrakeSet, EngineProfileSet, EngineProfileWithdrawn
from weft_contracts.facts.model import Deleted, Scaled, SpecAccepted
from weft_contracts.facts.request import (
    EngineProfileRequested,
    EngineProfileWithdrawalRequested,
    Fulfilled,
    Rejected,
)
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, ReplicaId
from weft_contracts.subjects import MESH
from weft_registry.domain.engine_profiles import MOST_PROFILES

from .registry_story import Story

ECHO = BUILTIN["simulated"].model_copy(update={"name": "echo"})
OTHER = ECHO.model_copy(update={"resumes_greedy": not ECHO.resumes_greedy})


@pytest.fixture
def story() -> Story:
    return Story()


def told(story: Story, profile: EngineProfile = ECHO) -> Fulfilled | Rejected:
    outcome = story.answered(story.ask(EngineProfileRequested(profile=profile)))
    assert isinstance(outcome, Fulfilled | Rejected)
    return outcome


def withdrawn(story: Story, engine: str = "echo") -> Fulfilled | Rejected:
    outcome = story.answered(story.ask(EngineProfileWithdrawalRequested(engine=engine)))
    assert isinstance(outcome, Fulfilled | Rejected)
    return outcome


def engines(story: Story) -> set[str]:
    """Those that the mesh knows beside the built-in ones."""
    return story.state.fleet.engines.keys() - BUILTIN.keys()


def test_the_mesh_knows_an_engine_that_an_admin_tells_it_of(story: Story) -> None:
    assert Fulfilled(result={"engine": "echo", "digest": ECHO.digest}) == told(story)
    assert EngineProfileSet(profile=ECHO) == story.log.facts(MESH)[-1]
    assert ECHO == story.state.fleet.engines["echo"]
    assert BUILTIN.items() <= story.state.fleet.engines.items()


def test_what_is_so_already_makes_no_event_and_another_profile_replaces_it(story: Story) -> None:
    told(story)
    before = story.log.facts(MESH)
    assert Fulfilled(result={"engine": "echo", "digest": ECHO.digest}) == told(story)
    assert before == story.log.facts(MESH)
    assert Fulfilled(result={"engine": "echo", "digest": OTHER.digest}) == told(story, OTHER)
    assert OTHER == story.state.fleet.engines["echo"]


def test_two_that_are_told_at_once_and_a_brake_each_find_their_turn(story: Story) -> None:
    story.log.given(MESH, BrakeSet(silent=5, healthy_before=5))
    both = [
        story.ask(EngineProfileRequested(profile=ECHO.model_copy(update={"name": name}))) for name in ("one", "two")
    ]
    for request in both:
        assert isinstance(story.answered(request), Fulfilled)
    assert {"one", "two"} == engines(story)


@pytest.mark.parametrize("name", BUILTIN)
def test_a_built_in_engine_is_neither_replaced_nor_withdrawn(story: Story, name: str) -> None:
    refused = told(story, ECHO.model_copy(update={"name": name}))
    assert Rejected(status=409, reason=f"{name} is an engine that Weft comes with: give yours another name") == refused
    refused = withdrawn(story, name)
    reason = f"{name} is an engine that Weft comes with: its profile can't be withdrawn"
    assert Rejected(status=409, reason=reason) == refused
    assert BUILTIN == story.state.fleet.engines


def test_a_profile_with_a_fault_is_refused_with_what_would_be_right(story: Story) -> None:
    refused = told(story, ECHO.model_copy(update={"serves": ()}))
    assert Rejected(status=422, reason="serves is empty: name at least one") == refused
    assert set() == engines(story)


def test_there_are_no_more_profiles_than_may_be_and_those_there_are_may_change(story: Story) -> None:
    for number in range(MOST_PROFILES):
        assert isinstance(told(story, ECHO.model_copy(update={"name": f"e{number}"})), Fulfilled)
    refused = told(story)
    assert isinstance(refused, Rejected)
    assert (409, "there are 32 profiles already, as many as may be: withdraw one") == (refused.status, refused.reason)
    assert isinstance(told(story, OTHER.model_copy(update={"name": "e0"})), Fulfilled)
    assert isinstance(withdrawn(story, "e1"), Fulfilled)
    assert isinstance(told(story), Fulfilled)


def test_an_engine_is_withdrawn_once_no_model_uses_it(story: Story) -> None:
    # given a model with a replica of the engine, which then turns to another one
    told(story)
    model = subjects.model(ModelId("m-1"))
    for revision, engine in ((1, "echo"), (2, "simulated")):
        spec = ModelSpec(source=SimulatedSource(), engine=engine)
        story.log.given(model, SpecAccepted(name="mine", revision=revision, digest=f"d-{revision}", spec=spec))
        if revision == 1:
            story.log.given(model, Scaled(revision=1, add=(ReplicaId("m-1-1"),), why="wanted"))
        # then it stays
        refused = withdrawn(story)
        assert isinstance(refused, Rejected), revision
        assert "mine would be left without an engine: delete what uses it first" == refused.reason
    # until the model is gone
    story.log.given(model, Deleted())
    assert Fulfilled(result={"engine": "echo"}) == withdrawn(story)
    assert EngineProfileWithdrawn(engine="echo") == story.log.facts(MESH)[-1]
    assert set() == engines(story)


def test_an_engine_that_nobody_told_of_is_not_withdrawn(story: Story) -> None:
    assert Rejected(status=404, reason="there is no engine echo") == withdrawn(story)
