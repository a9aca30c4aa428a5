"""Replicas that run in what an older recipe made move on when they are told to, one after the other."""

import pytest
from weft_contracts import subjects
from weft_contracts.backends import BackendRecipe, BackendVariant
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import BackendSet, BackendUpgraded
from weft_contracts.facts.run import Loading, Ready
from weft_contracts.facts.values import Backend, Device, Hardware, InstalledBackend
from weft_contracts.ids import Incarnation

from .story import Story, simulated

OLD = BackendVariant(vendor="cpu", package="simulated", version="1", requirements=("simulated==1",), disk=1)
NEW = OLD.model_copy(update={"version": "2", "requirements": ("simulated==2",)})
UPGRADED = BackendUpgraded(engine="simulated", superseded=(OLD.digest,))


def recipe(*variants: BackendVariant) -> BackendSet:
    return BackendSet(recipe=BackendRecipe(engine="simulated", variants=variants))


@pytest.fixture
def story() -> Story:
    """Three nodes, each with what both recipes made, and today's is the new one."""
    story = Story()
    story.node("a", "b", "c")
    made = tuple(
        InstalledBackend(
            name=f"simulated-{each.version}", engine="simulated", vendor="cpu", version="1", recipe=each.digest
        )
        for each in (OLD, NEW)
    )
    backend = Backend(engine="simulated", version="1", vendors=("cpu",))
    processor = Device(index=0, vendor="cpu", name="processor", memory=1 << 30)
    hardware = Hardware(cpus=2, memory=1 << 30, devices=(processor,))
    report = Reported(hardware=hardware, backends=(backend,), builtins=(), agent_version="1", environments=made)
    for name in "abc":
        story.log.given(subjects.machine(story.id(name)), report)
    story.log.given(subjects.MESH, recipe(NEW))
    return story


def runs_in(story: Story, number: int, node: str, backend: str) -> None:
    """Place a replica, and let it become ready in an environment."""
    story.place(number, node)
    start = Incarnation(f"i{story.log.head}")
    story.run(number, node, Loading(epoch=1, incarnation=start, backend=backend))
    story.run(number, node, Ready(epoch=1, incarnation=start, port=1, engine="simulated", engine_version="1"))
    story.settle()


def two_in(story: Story, backend: str) -> None:
    story.deploy("m", simulated(2))
    story.settle()
    runs_in(story, 1, "a", backend)
    runs_in(story, 2, "b", backend)


def test_they_are_replaced_one_by_one_and_each_goes_only_when_another_serves(story: Story) -> None:
    # given two in the old one
    two_in(story, "simulated-1")
    assert [1, 2] == story.numbers()
    # when they are told to move
    story.log.given(subjects.MESH, UPGRADED)
    story.settle()
    # then one more is started, and both serve on
    assert [1, 2, 3] == story.numbers()
    assert "runs in simulated 1, which is superseded" in story.scaled()[-1].why
    # when that serves
    runs_in(story, 3, "c", "simulated-2")
    # then one goes, and the next is started
    assert 3 == len(story.numbers())
    assert {3, 4} < set(story.numbers())
    runs_in(story, 4, "a", "simulated-2")
    assert [3, 4] == story.numbers()


def test_without_being_told_to_nothing_moves_and_what_runs_in_the_new_one_never_does(story: Story) -> None:
    two_in(story, "simulated-1")
    story.pass_time(60)
    assert [1, 2] == story.numbers()
    story.deploy("n", simulated(1))
    story.settle()
    story.log.given(subjects.MESH, BackendUpgraded(engine="llama.cpp", superseded=(OLD.digest,)))
    story.settle()
    assert [1, 2] == story.numbers()


@pytest.mark.parametrize("backend", ["simulated-2", "", "of-nobody"])
def test_what_does_not_run_in_a_superseded_one_stays(story: Story, backend: str) -> None:
    two_in(story, backend)
    story.log.given(subjects.MESH, UPGRADED)
    story.settle()
    assert [1, 2] == story.numbers()


def test_what_was_placed_after_the_upgrade_stays_wherever_it_runs_so_that_nothing_moves_for_ever(story: Story) -> None:
    story.log.given(subjects.MESH, UPGRADED)
    two_in(story, "simulated-1")
    assert [1, 2] == story.numbers()


def test_a_recipe_that_came_back_is_not_moved_away_from(story: Story) -> None:
    two_in(story, "simulated-1")
    story.log.given(subjects.MESH, recipe(OLD))
    story.log.given(subjects.MESH, UPGRADED)
    story.settle()
    assert [1, 2] == story.numbers()
