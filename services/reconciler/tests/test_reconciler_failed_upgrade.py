"""An engine's upgrade that fails: what served before is repaired as before, and the failed thing is named."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.backends import BackendRecipe, BackendVariant
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import BackendSet, BackendUpgraded
from weft_contracts.facts.model import Unservable
from weft_contracts.facts.run import Installing, Loading, Ready, Stopped
from weft_contracts.facts.values import Backend, Device, Hardware, InstalledBackend, Installs
from weft_contracts.ids import Incarnation
from weft_placement.installable import to_install
from weft_placement.kept_recipe import recipe_for

from .story import Story, simulated

OLD = BackendVariant(vendor="cpu", package="simulated", version="1", requirements=("simulated==1",), disk=1)
NEW = OLD.model_copy(update={"version": "2", "requirements": ("simulated==2",)})
NEXT = OLD.model_copy(update={"version": "3", "requirements": ("simulated==3",)})
UPGRADED = BackendUpgraded(engine="simulated", superseded=(OLD.digest,))
NODES = "abcd"


def recipe(*variants: BackendVariant) -> BackendSet:
    return BackendSet(recipe=BackendRecipe(engine="simulated", variants=variants))


def known(story: Story) -> tuple[str, ...]:
    """What the model's replicas would be installed by: the versions."""
    found = recipe_for(story.state.fleet, story.model().id, story.model().current.number)
    return tuple(variant.version for variant in found.variants) if found is not None else ()


def place(story: Story, number: int, node: str) -> BackendVariant | None:
    """Place a replica as the scheduler does: with what its node must install."""
    fleet, model = story.state.fleet, story.model()
    recipe = recipe_for(fleet, model.id, story.replica(number).revision)
    backend = to_install(fleet.nodes[story.id(node)], fleet.engines["simulated"], recipe, {0})
    story.place(number, node, backend=backend)
    return backend


def serve(story: Story, number: int, node: str) -> None:
    """Place a replica, and let it become ready in what it was told to run in."""
    backend = place(story, number, node)
    start = Incarnation(f"i{story.log.head}")
    name = f"simulated-{backend.version}" if backend is not None else ""
    story.run(number, node, Loading(epoch=1, incarnation=start, backend=name))
    story.run(number, node, Ready(epoch=1, incarnation=start, port=1, engine="simulated", engine_version="1"))
    story.settle()


def fail(story: Story, number: int, node: str, reason: str = "it crashed", *, permanent: bool = False) -> None:
    if story.replica(number).placed is None:
        place(story, number, node)
    story.fail(number, node, reason, permanent)
    story.settle()


@pytest.fixture
def story() -> Story:
    """Two serve in the old one on four nodes, when the mesh is told to move to the new one."""
    return upgraded()


def upgraded() -> Story:
    story = Story()
    story.node(*NODES)
    made = tuple(
        InstalledBackend(
            name=f"simulated-{each.version}", engine="simulated", vendor="cpu", version=each.version, recipe=each.digest
        )
        for each in (OLD, NEW, NEXT)
    )
    backend = Backend(engine="simulated", version="1", vendors=("cpu",))
    processor = Device(index=0, vendor="cpu", name="processor", memory=1 << 30)
    hardware = Hardware(cpus=2, memory=1 << 30, devices=(processor,))
    report = Reported(
        hardware=hardware,
        backends=(backend,),
        builtins=(),
        agent_version="1",
        environments=made,
        installs=Installs(),
    )
    for name in NODES:
        story.log.given(subjects.machine(story.id(name)), report)
    story.log.given(subjects.MESH, recipe(OLD))
    story.deploy("m", simulated(2))
    story.settle()
    serve(story, 1, "a")
    serve(story, 2, "b")
    story.log.given(subjects.MESH, recipe(NEW))
    story.log.given(subjects.MESH, UPGRADED)
    story.settle()
    story.pass_time(60)
    assert [1, 2, 3] == story.numbers()
    return story


def given_up(story: Story) -> list[tuple[int, str]]:
    """What was said to be unservable: revision, and the recipe's digest where it was only that."""
    return [(fact.revision, fact.recipe) for fact in story.log.facts() if isinstance(fact, Unservable)]


def test_an_upgrade_that_fails_for_good_is_refused_by_itself_and_what_serves_stays(story: Story) -> None:
    fail(story, 3, "c", "there is no such release", permanent=True)

    assert [(1, NEW.digest)] == given_up(story)
    assert [1, 2] == story.numbers()
    assert {} == story.model().given_up
    assert ("1",) == known(story)


def test_one_that_fails_on_three_nodes_is_refused_and_not_before(story: Story) -> None:
    fail(story, 3, "c")
    fail(story, 4, "d")
    assert [] == given_up(story)

    fail(story, 5, "a")

    assert [(1, NEW.digest)] == given_up(story)
    assert [1, 2] == story.numbers()


def test_what_serves_is_repaired_in_what_it_served_in_also_where_the_upgrade_failed(story: Story) -> None:
    # given an upgrade that failed
    fail(story, 3, "c", permanent=True)
    # when a node dies
    story.lose("a")
    story.settle()
    # then another is started, which may go to where the new one failed, and runs in the old one
    (added,) = [view for view in story.wanted() if view.number > 3]
    assert () == added.avoid
    assert OLD == place(story, added.number, "c")
    story.ready(added.number, "c")
    story.settle()
    # and the lost one goes, and nothing moves any more
    assert [2, added.number] == story.numbers()
    story.pass_time(120)
    assert [2, added.number] == story.numbers()


def test_a_failure_in_what_it_served_in_still_gives_the_revision_up(story: Story) -> None:
    fail(story, 3, "c", permanent=True)

    fail(story, 1, "a", "the file is broken", permanent=True)

    assert [(1, NEW.digest), (1, "")] == given_up(story)


def test_failures_of_the_upgrade_and_of_what_serves_are_counted_apart(story: Story) -> None:
    fail(story, 3, "c")
    fail(story, 1, "a")
    fail(story, 4, "d")

    assert [] == given_up(story)


def test_an_install_that_is_tried_again_and_again_is_left_to_it_while_enough_serve(story: Story) -> None:
    place(story, 3, "c")
    story.run(3, "c", Installing(epoch=1, engine="simulated"))
    story.run(3, "c", Stopped(epoch=1, why="exited", detail="no index answers"))
    story.pass_time(300)

    assert [] == given_up(story)
    assert [1, 2, 3] == story.numbers()


@pytest.mark.parametrize("again", [False, True])
def test_an_install_that_failed_gives_way_when_what_serves_is_lost(story: Story, *, again: bool) -> None:
    # given a try of the new one that ended, and perhaps the next
    place(story, 3, "c")
    story.run(3, "c", Installing(epoch=1, engine="simulated"))
    story.run(3, "c", Stopped(epoch=1, why="exited", detail="no index answers"))
    if again:
        story.run(3, "c", Installing(epoch=1, engine="simulated"))
    # when what serves is too little
    story.lose("a")
    story.settle()
    # then the upgrade is refused with that reason, and the missing one is started in the old one
    assert [(1, NEW.digest)] == given_up(story)
    assert ["no index answers"] == list(story.model().refused[1].values())
    assert [1, 2, 4] == story.numbers()
    assert OLD == place(story, 4, "c")


def test_one_that_has_not_failed_yet_is_waited_for(story: Story) -> None:
    place(story, 3, "c")
    story.run(3, "c", Installing(epoch=1, engine="simulated"))
    story.lose("a")
    story.settle()

    assert [] == given_up(story)


def test_once_one_serves_in_the_new_one_its_failures_are_the_revisions(story: Story) -> None:
    serve(story, 3, "c")

    fail(story, 4, "d", permanent=True)

    assert [(1, "")] == given_up(story)


@pytest.mark.parametrize("how", ["retry", "upgrade", "recipe"])
def test_it_is_tried_again_when_somebody_says_so(story: Story, how: str) -> None:
    fail(story, 3, "c", permanent=True)
    assert [1, 2] == story.numbers()

    match how:
        case "retry":
            story.retry(story.model().id)
        case "upgrade":
            story.log.given(subjects.MESH, UPGRADED)
        case _:
            story.log.given(subjects.MESH, recipe(NEXT))
    story.settle()

    assert [1, 2, 4] == story.numbers()
    assert (NEXT if how == "recipe" else NEW) == place(story, 4, "c")


def test_an_upgrade_of_another_engine_lifts_nothing(story: Story) -> None:
    fail(story, 3, "c", permanent=True)

    story.log.given(subjects.MESH, BackendUpgraded(engine="llama.cpp", superseded=(OLD.digest,)))
    story.settle()

    assert [1, 2] == story.numbers()


def test_a_recipe_that_failed_before_the_revision_ever_served_is_the_revisions_fault() -> None:
    story = Story()
    story.node("a", "b")
    story.log.given(subjects.MESH, recipe(NEW))
    story.deploy("m", simulated(1))
    story.settle()
    story.place(1, "a", backend=NEW)

    story.fail(1, "a", permanent=True)
    story.settle()

    assert [(1, "")] == given_up(story)


happenings = st.lists(
    st.tuples(st.sampled_from(["fail", "fail for good", "serve", "lose", "find", "time"]), st.integers(0, 3)),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(happenings)
def test_whatever_happens_during_an_upgrade_nobody_is_left_without_a_repair(
    what: list[tuple[str, int]],
) -> None:
    """The new one works nowhere, the old one everywhere; nodes come and go, never all at once."""
    story = upgraded()
    away: set[str] = set()
    for happens, which in what:
        node = NODES[which]
        waiting = [view for view in story.wanted() if view.placed is None and node not in away]
        match happens:
            case "lose" if len(away) < 2:
                story.lose(node)
                away.add(node)
            case "find":
                story.find(node)
                away.discard(node)
            case "time":
                story.pass_time(30)
            case "serve" | "fail" | "fail for good" if waiting and node not in waiting[0].avoid:
                number = waiting[0].number
                if place(story, number, node) == OLD:
                    story.ready(number, node)
                else:
                    story.fail(number, node, permanent=happens == "fail for good")
            case _:
                pass
        story.settle()
    # when all nodes are there, and each that waits gets a place
    for node in sorted(away):
        story.find(node)
    for _ in range(20):
        story.settle()
        for view in [each for each in story.wanted() if each.placed is None]:
            node = next(name for name in NODES if story.id(name) not in view.avoid)
            if place(story, view.number, node) == OLD:
                story.ready(view.number, node)
            else:
                story.fail(view.number, node, permanent=True)
    story.settle()
    # then as many serve as should, all in the old one, and the revision was not given up
    assert {} == story.model().given_up
    assert [(1, NEW.digest)] == given_up(story)
    assert 2 == len(story.wanted())
    assert all(view.state == "ready" for view in story.wanted())
