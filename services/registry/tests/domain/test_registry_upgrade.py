"""The end of an upgrade: newest versions are written once all who live read them, and it is said who doesn't."""

import pytest
from weft_contracts import subjects
from weft_contracts.backends import BackendRecipe, BackendVariant
from weft_contracts.engines import BUILTIN, Argument
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import FormatRaised
from weft_contracts.facts.node import Removed, WentOffline
from weft_contracts.facts.request import (
    BackendRequested,
    EngineProfileRequested,
    Fulfilled,
    Rejected,
    UpgradeFinishRequested,
)
from weft_contracts.facts.values import Hardware
from weft_contracts.formats import FORMATS, READS
from weft_contracts.ids import NodeId
from weft_registry.domain.upgrade import WAIT_S, ServicesHeard

from .registry_story import Story, node

ALL_NEW = (("gateway", FORMATS), ("registry", FORMATS), ("registry", FORMATS + 1))
ONE = node(1)


@pytest.fixture
def story() -> Story:
    """A mesh of an earlier version whose services are all upgraded."""
    story = Story(older=True)
    services(story, *ALL_NEW)
    return story


def services(story: Story, *reading: tuple[str, int], fault: str | None = None) -> None:
    """The servers say from here on that these are connected."""
    story.services = ServicesHeard(1 << 40, reading, fault)


def reported(story: Story, id: NodeId, *, new: bool) -> None:
    hardware = Hardware(cpus=1, memory=1)
    reads = dict(READS) if new else {}
    said = Reported(hardware=hardware, backends=(), builtins=(), agent_version="1", reads=reads)
    story.log.given(subjects.machine(id), said)


def finished(story: Story) -> Fulfilled | Rejected:
    outcome = story.answered(story.ask(UpgradeFinishRequested()))
    assert isinstance(outcome, Fulfilled | Rejected)
    return outcome


def refused(story: Story) -> str:
    before = story.state.fleet.formats
    outcome = finished(story)
    assert isinstance(outcome, Rejected)
    assert before == story.state.fleet.formats
    return outcome.reason


def test_a_new_mesh_may_write_all_from_its_first_commit_on() -> None:
    story = Story()
    assert dict(READS) == story.state.fleet.formats
    assert all(isinstance(fact, FormatRaised) for fact in story.log.commits[0].facts[1:])


def test_a_mesh_of_an_earlier_version_may_write_nothing_anew_before_it_is_finished(story: Story) -> None:
    assert not story.state.fleet.formats
    assert isinstance(finished(story), Fulfilled)
    assert dict(READS) == story.state.fleet.formats


def test_finished_twice_is_as_good_as_once(story: Story) -> None:
    finished(story)
    before = story.log.facts(subjects.MESH)
    assert Fulfilled(result={"raised": ""}) == finished(story)
    assert before == story.log.facts(subjects.MESH)


def test_a_connected_service_of_an_earlier_version_holds_it_up_and_is_named(story: Story) -> None:
    services(story, *ALL_NEW, ("scheduler", 0), ("scheduler", 0), ("gateway", 0))
    reason = refused(story)
    assert "1 gateway of an earlier version is connected" in reason
    assert "2 scheduler of an earlier version are connected" in reason
    assert "registry" not in reason


def test_a_service_that_reads_all_but_one_holds_it_up(story: Story) -> None:
    services(story, *ALL_NEW, ("gateway", FORMATS - 1))
    assert "gateway" in refused(story)


def test_a_worker_of_an_earlier_version_holds_it_up_until_it_is_upgraded(story: Story) -> None:
    story.nodes(1)
    assert "the worker of node-1 has not said what it reads" in refused(story)
    reported(story, ONE, new=False)
    assert "the worker of node-1 is of an earlier version: upgrade it" in refused(story)
    reported(story, ONE, new=True)
    assert isinstance(finished(story), Fulfilled)


def test_a_worker_that_is_away_holds_it_up_until_its_node_is_removed(story: Story) -> None:
    story.nodes(1)
    reported(story, ONE, new=False)
    story.log.given(subjects.node(ONE), WentOffline(silent_for=9))
    story.speaking.clear()
    assert "node-1 is of an earlier version and is away" in refused(story)
    story.log.given(subjects.node(ONE), Removed(why="gone"))
    assert isinstance(finished(story), Fulfilled)


def test_a_node_that_waits_for_approval_and_an_agent_hold_up_nothing(story: Story) -> None:
    story.join(1, story.token("waits", approves=False))
    story.join(2, story.token(), node_kind="agent")
    assert isinstance(finished(story), Fulfilled)


def test_what_the_servers_do_not_say_is_waited_for_and_then_refused(story: Story) -> None:
    # given servers that were asked before, and not since
    story.services = ServicesHeard(story.log.head, ALL_NEW)
    request = story.ask(UpgradeFinishRequested())
    story.settle()
    assert 1 == len(story.log.facts(request))
    # when their time is over
    story.log.now += WAIT_S
    # then
    outcome = story.answered(request)
    assert isinstance(outcome, Rejected)
    assert outcome.status == 503
    assert not story.state.fleet.formats


def test_where_nobody_can_be_asked_it_is_refused_with_the_reason(story: Story) -> None:
    services(story, fault="no trust folder")
    assert "no trust folder" in refused(story)


def test_servers_that_do_not_say_who_is_connected_hold_it_up_by_name(story: Story) -> None:
    story.services = ServicesHeard(1 << 40, ALL_NEW, unheard=("n2", "n3"))
    outcome = finished(story)
    assert isinstance(outcome, Rejected)
    assert 503 == outcome.status
    assert "these don't: n2, n3. A service there may be of an earlier version" in outcome.reason
    assert not story.state.fleet.formats


def test_a_service_that_lives_by_its_lease_and_is_not_heard_holds_it_up_by_name(story: Story) -> None:
    story.services = ServicesHeard(1 << 40, ALL_NEW, living=("registry", "scheduler"))
    outcome = finished(story)
    assert isinstance(outcome, Rejected)
    assert (503, True) == (outcome.status, "of the connection of scheduler, which lives by its lease" in outcome.reason)
    assert not story.state.fleet.formats
    story.services = ServicesHeard(1 << 40, (*ALL_NEW, ("scheduler", FORMATS)), living=("registry", "scheduler"))
    assert isinstance(finished(story), Fulfilled)


def test_what_waits_for_the_servers_holds_up_no_other_request(story: Story) -> None:
    story.services = ServicesHeard(story.log.head, ALL_NEW)
    story.ask(UpgradeFinishRequested())
    assert isinstance(story.join(1, story.token()), Fulfilled)


@pytest.mark.parametrize("with_recipe", [False, True])
def test_a_profile_with_a_list_waits_for_the_end_of_the_upgrade(story: Story, with_recipe: bool) -> None:
    # given
    echo = BUILTIN["simulated"]
    arguments = {**echo.arguments, "x": Argument(type="list")}
    profile = echo.model_copy(update={"name": "mine", "arguments": arguments})
    asked = EngineProfileRequested(profile=profile)
    assert 2 == asked.v
    if with_recipe:
        variant = BackendVariant(vendor="cpu", package="mine", version="1", requirements=("mine==1",), disk=1)
        asked = BackendRequested(recipe=BackendRecipe(engine="mine", variants=(variant,)), profile=profile)
    # when
    outcome = story.answered(story.ask(asked))
    # then
    assert isinstance(outcome, Rejected)
    assert "weft upgrade finish" in outcome.reason
    finished(story)
    assert isinstance(story.answered(story.ask(asked)), Fulfilled)
    assert profile == story.state.fleet.engines["mine"]
