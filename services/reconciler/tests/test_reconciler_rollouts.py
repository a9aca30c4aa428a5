"""How a new revision takes the place of another: how many more there may be, how many may be missing, for how long."""

from typing import Any

import pytest
from weft_contracts import subjects
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.model import RolledBack, RolloutSet, Scaled
from weft_contracts.facts.node import Cordoned
from weft_contracts.facts.request import Fulfilled, Rejected

from .elastic import an_elastic_model
from .story import Story, simulated

BETTER = simulated(2, concurrency=3)


def states(story: Story) -> list[tuple[int, str]]:
    """Revision and state of each wanted replica."""
    return sorted((view.revision, view.state) for view in story.wanted())


def rolling(story: Story, spec: Any = BETTER, **rules: float) -> None:
    """A new revision is wanted under these rules."""
    story.schedule(**rules)
    story.settle()
    story.deploy("m", spec)
    story.settle()


def newest(story: Story) -> int:
    return story.wanted()[-1].number


def coming(story: Story) -> int:
    """The number of the replica of revision 2 that has no place yet."""
    return next(view.number for view in story.wanted() if view.revision == 2 and view.placed is None)


def facts_of(story: Story, kind: type[Fact]) -> list[Any]:
    return [fact for fact in story.log.facts() if isinstance(fact, kind)]


# how many at once


def test_as_many_more_as_the_rollout_allows_start_at_once(story: Story) -> None:
    rolling(story, max_surge=2)

    assert [(1, "ready"), (1, "ready"), (2, "added"), (2, "added")] == states(story)


def test_by_default_there_is_one_more_at_a_time_and_nothing_goes_before_it_serves(story: Story) -> None:
    rolling(story)
    assert [(1, "ready"), (1, "ready"), (2, "added")] == states(story)

    story.find_no_place(newest(story))
    story.pass_time(60)

    assert [(1, "ready"), (1, "ready"), (2, "unplaceable")] == states(story)


def test_with_no_more_than_should_serve_each_goes_first_one_after_another(story: Story) -> None:
    rolling(story, max_surge=0, max_unavailable=1)
    assert [(1, "ready"), (2, "added")] == states(story)
    assert story.scaled()[-1].why.endswith(
        "-2 goes first: there may be no more than should serve, and 1 may be missing"
    )

    story.ready(3, "b")
    story.settle()
    assert [(2, "added"), (2, "ready")] == states(story)
    story.ready(4, "a")
    story.settle()

    assert [(2, "ready"), (2, "ready")] == states(story)
    assert 2 == story.model().established


def test_where_one_more_has_no_room_one_goes_first_if_it_may_and_says_so(story: Story) -> None:
    rolling(story, max_unavailable=1)
    assert [(1, "ready"), (1, "ready"), (2, "added")] == states(story)

    story.find_no_place(3)
    story.settle()

    assert [(1, "ready"), (2, "unplaceable")] == states(story)
    assert story.scaled()[-1].why.endswith("goes first: there is no room for one more, and 1 may be missing")
    # and no second one goes before the first has been replaced, though more could be missing for all that there is
    story.pass_time(60)
    assert [(1, "ready"), (2, "unplaceable")] == states(story)


def test_none_goes_first_from_where_the_new_revision_could_not_run(story: Story) -> None:
    rolling(story, simulated(2, selector={"zone": "nowhere"}), max_unavailable=2)
    story.find_no_place(3)

    story.pass_time(60)

    assert [(1, "ready"), (1, "ready"), (2, "unplaceable")] == states(story)


@pytest.mark.parametrize("how", ["cordoned", "failed there"])
def test_none_goes_first_from_where_no_new_one_may_go_now(how: str, story: Story) -> None:
    story.schedule(max_surge=1, max_unavailable=1)
    story.settle()
    if how == "cordoned":
        story.say("b", Cordoned(why="admin"))
    story.deploy("m", BETTER)
    story.settle()
    if how != "cordoned":
        story.fail(newest(story), "b")
        story.settle()
    story.find_no_place(newest(story))

    story.pass_time(60)

    assert [story.id("b")] == [view.members[0].node for view in story.wanted() if view.revision == 1]


def test_where_the_new_one_failed_that_the_old_one_left_for_it_the_old_one_is_put_back_at_once(story: Story) -> None:
    # given one that goes first, and the new one that fails in its place
    rolling(story, max_unavailable=1)
    story.find_no_place(newest(story))
    story.settle()
    assert [(1, "ready"), (2, "unplaceable")] == states(story)
    freed = ({"a", "b"} - {view.members[0].node.removeprefix("n-") for view in story.wanted() if view.members}).pop()
    story.fail(newest(story), freed)
    # when
    story.settle()
    # then the place is the old one's again, and the new one is tried elsewhere
    assert [(1, "added"), (1, "ready"), (2, "added")] == states(story)
    back = next(view for view in story.wanted() if view.revision == 1 and view.placed is None)
    story.find_no_place(coming(story))
    story.ready(back.number, freed)
    story.settle()
    assert [(story.id(freed), 1)] == [(view.members[0].node, view.revision) for view in story.wanted() if view.members]
    # and there again once that failure counts no more
    other = "b" if freed == "a" else "a"
    story.ready(coming(story), other)
    story.settle()
    story.find_no_place(coming(story))
    story.pass_time(3700)
    story.find_no_place(coming(story))
    story.settle()
    assert freed not in [view.members[0].node.removeprefix("n-") for view in story.wanted() if view.members]
    story.ready(coming(story), freed)
    story.settle()
    assert [(2, "ready"), (2, "ready")] == states(story)


def test_none_goes_first_while_the_brake_holds(story: Story) -> None:
    story.schedule(max_surge=0, max_unavailable=1)
    story.settle()
    story.log.given(subjects.MESH, BrakeSet(silent=2, healthy_before=4))
    story.deploy("m", BETTER)
    story.settle()
    assert [(1, "ready"), (1, "ready")] == states(story)

    story.log.given(subjects.MESH, BrakeLifted(why="the leases returned"))
    story.settle()

    assert [(1, "ready"), (2, "added")] == states(story)


def test_one_that_dies_meanwhile_is_one_that_may_be_missing(story: Story) -> None:
    rolling(story, max_surge=0, max_unavailable=1)
    assert [(1, "ready"), (2, "added")] == states(story)

    story.fail(1, "a")
    story.settle()

    assert [(1, "added"), (2, "added")] == states(story)


def test_a_revision_that_is_given_up_gives_back_what_went_first(story: Story) -> None:
    rolling(story, max_surge=0, max_unavailable=1)

    story.fail(3, "b", "bogus", permanent=True)
    story.settle()

    assert [(1, "added"), (1, "ready")] == states(story)


def test_a_lone_replica_goes_first_only_where_nothing_at_all_may_serve() -> None:
    story = Story()
    story.node("a")
    story.deploy("m", simulated(1))
    story.settle()
    story.ready(1, "a")
    story.settle()
    rolling(story, simulated(1, concurrency=3))
    story.find_no_place(2)
    story.pass_time(30)
    assert [(1, "ready"), (2, "unplaceable")] == states(story)

    story.schedule(max_unavailable=1)
    story.settle()

    assert [(2, "unplaceable")] == states(story)


def test_a_model_that_grew_is_rolled_out_at_its_size() -> None:
    story = an_elastic_model(1, 4, ready=1)
    story.serve(10, running=2, waiting=1)
    story.ready(2, "b")
    story.settle()
    rolling(story, simulated(1, 4, concurrency=3), max_surge=0, max_unavailable=1)

    assert [(1, "ready"), (2, "added")] == states(story)


# what is said of it


def test_what_is_not_said_of_a_rollout_stays_and_is_no_revision(story: Story) -> None:
    first = story.schedule(max_surge=3)
    story.settle()
    story.schedule(max_unavailable=1)
    story.settle()

    said = story.answer(first)
    assert isinstance(said, Fulfilled)
    assert {"model": story.model().id, "revision": "1"} == said.result
    assert 1 == story.model().revision
    last = facts_of(story, RolloutSet)[-1].rules
    assert (3, 1, 14_400.0) == (last.max_surge, last.max_unavailable, last.progress_s)


def test_rules_by_which_nothing_could_be_replaced_are_refused(story: Story) -> None:
    asked = story.schedule(max_surge=0)
    story.settle()

    said = story.answer(asked)
    assert isinstance(said, Rejected)
    assert (400, True) == (said.status, said.reason.startswith("max_surge and max_unavailable are both 0"))


# for how long


def test_a_revision_that_gets_no_further_in_time_is_taken_back(story: Story) -> None:
    rolling(story, progress_s=120)
    story.ready(3, "c")
    story.pass_time(115)
    assert [(1, "ready"), (2, "added"), (2, "ready")] == states(story)
    assert [] == facts_of(story, RolledBack)

    # when the second finds no place for as long as it may take
    story.find_no_place(4, "no room anywhere")
    story.pass_time(10)

    # then the kept revision gets its place back, and what serves of the failed one stays until it has it
    assert [(1, "added"), (1, "ready"), (2, "ready")] == states(story)
    (back,) = facts_of(story, RolledBack)
    assert (2, 1) == (back.revision, back.to)
    assert back.why.startswith("no more of it were ready within 120 s; ")
    assert back.why.endswith("-4 is unplaceable: no room anywhere")
    story.ready(5, "b")
    story.pass_time(300)
    assert [(1, "ready"), (1, "ready")] == states(story)


def test_starting_again_and_again_is_no_progress(story: Story) -> None:
    rolling(story, progress_s=120)
    tries = 0
    while not facts_of(story, RolledBack):
        tries += 1
        story.ready(3, "c")
        story.settle()
        story.pass_time(5)
        story.shut_down(3, "c")
        story.pass_time(5)
    assert 12 == tries


def test_time_in_which_nobody_looked_is_none_that_it_took(story: Story) -> None:
    rolling(story, progress_s=120)
    story.sleep(10_000)

    story.pass_time(115)
    assert [] == facts_of(story, RolledBack)
    story.pass_time(10)

    assert 1 == len(facts_of(story, RolledBack))


@pytest.mark.parametrize("why", ["it may take for ever", "the brake holds", "it is established", "none was before it"])
def test_it_is_not_taken_back_where(why: str, story: Story) -> None:
    if why == "none was before it":
        story = Story()
        story.node("a", "b", "c", "d")
        story.deploy("m", simulated(2))
        story.settle()
    rolling(story, progress_s=0 if why == "it may take for ever" else 120)
    if why == "the brake holds":
        story.log.given(subjects.MESH, BrakeSet(silent=2, healthy_before=4))
    if why == "it is established":
        story.ready(3, "c")
        story.settle()
        story.ready(4, "d")

    story.pass_time(1000)

    assert [] == facts_of(story, RolledBack)


def test_one_that_was_taken_back_is_tried_again_when_asked_for(story: Story) -> None:
    rolling(story, progress_s=120)
    story.pass_time(130)
    assert 1 == len(facts_of(story, RolledBack))

    story.retry(story.model().id)
    story.settle()
    assert [(1, "ready"), (1, "ready"), (2, "added")] == states(story)
    story.pass_time(115)
    assert 1 == len(facts_of(story, RolledBack))
    story.pass_time(10)

    assert 2 == len(facts_of(story, RolledBack))


def test_a_revision_that_fails_for_good_is_taken_back_by_the_same_word(story: Story) -> None:
    rolling(story)

    story.fail(3, "c", "bogus is no argument", permanent=True)
    story.settle()

    (back,) = facts_of(story, RolledBack)
    assert (2, 1, "bogus is no argument") == (back.revision, back.to, back.why)


def test_a_first_revision_that_fails_goes_back_to_nothing() -> None:
    story = Story()
    story.node("a")
    story.deploy("m", simulated(1))
    story.settle()

    story.fail(1, "a", "bogus", permanent=True)
    story.settle()

    assert [] == facts_of(story, RolledBack)
    assert ["bogus"] == story.unservable()


def test_a_sleeping_model_is_not_taken_back_for_sleeping() -> None:
    story = an_elastic_model(0, 2, ready=0)
    story.serve(3, loading=1)
    story.activate()
    story.settle()
    story.ready(1, "a")
    story.settle()
    story.serve(400)
    assert story.model().asleep
    rolling(story, simulated(0, 2, concurrency=3), progress_s=120)
    story.pass_time(1000)
    assert [] == facts_of(story, RolledBack)

    story.activate()
    story.settle()
    assert [(2, "added")] == [each for each in states(story) if each[0] == 2]
    story.pass_time(115)
    assert [] == facts_of(story, RolledBack)
    story.pass_time(10)

    assert 1 == len(facts_of(story, RolledBack))


def test_each_scaled_tells_what_it_rests_on(story: Story) -> None:
    rolling(story)

    fact = facts_of(story, Scaled)[-1]
    assert fact.receipt is not None
    assert (fact.position, 7) == (fact.receipt.position, fact.receipt.seed)
    assert fact.receipt.decided_at >= fact.receipt.looked_since > 0
