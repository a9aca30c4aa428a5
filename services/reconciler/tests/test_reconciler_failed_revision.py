"""A revision that fails: until one has been ready with all its replicas, the last that was is what is kept."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.facts.model import Scaled, Unservable
from weft_contracts.facts.request import Fulfilled
from weft_contracts.facts.values import Member, ModelSpec
from weft_contracts.ids import replica_id
from weft_fleet import ReplicaView
from weft_reconciler.domain.replica_status import assess
from weft_reconciler.domain.state import State

from .story import WEIGHTS, Story, builtin, simulated

GOOD = simulated(2)
BAD = simulated(2, engine_args={"fail_load": "bogus"})
BETTER = simulated(2, concurrency=3)


def fail_newest(story: Story, node: str = "c", reason: str = "bogus is no argument") -> None:
    """Its first replica fails for good."""
    story.fail(of_revision(story, story.model().revision)[0].number, node, reason, permanent=True)
    story.settle()


def failed(story: Story, spec: ModelSpec = BAD) -> None:
    """A new revision that can't be served is deployed, and given up."""
    story.deploy("m", spec)
    story.settle()
    fail_newest(story)


def of_revision(story: Story, revision: int) -> list[ReplicaView]:
    return [view for view in story.wanted() if view.revision == revision]


def states(story: Story) -> list[tuple[int, str]]:
    """Revision and state of each wanted replica."""
    return sorted((view.revision, view.state) for view in story.wanted())


def restart_mesh(story: Story) -> None:
    """Down in order, a night, and up again."""
    there = [(view.number, view.members[0].node.removeprefix("n-")) for view in story.wanted() if view.members]
    for number, node in there:
        story.shut_down(number, node)
    for node in ("a", "b", "c", "d"):
        story.lose(node)
    story.sleep(30_000)
    story.settle()
    for node in ("a", "b", "c", "d"):
        story.find(node)
        story.settle()
    for number, node in there:
        story.ready(number, node)
        story.settle()


# what is kept


def test_an_engine_of_the_kept_revision_that_dies_is_replaced_by_one_of_its_own(story: Story) -> None:
    failed(story)
    assert [(1, "ready"), (1, "ready")] == states(story)

    story.fail(1, "a", "signal 9")
    story.settle()

    assert [(1, "added"), (1, "ready")] == states(story)
    added = story.scaled()[-1]
    assert (1, ("n-a",)) == (added.revision, added.avoid)
    assert f"{story.replica(1).id} failed on a: signal 9" == added.why


def test_an_engine_that_starts_again_is_not_retired(story: Story) -> None:
    failed(story)
    story.shut_down(1, "a")

    assert [] == story.settle()

    assert [1, 2] == story.numbers()


def test_a_mesh_that_was_stopped_takes_the_kept_revision_up(story: Story) -> None:
    failed(story)

    restart_mesh(story)

    assert [(1, "ready"), (1, "ready")] == states(story)
    assert [1, 2] == story.numbers()


def test_what_dies_while_the_new_one_still_loads_is_replaced_too(story: Story) -> None:
    story.deploy("m", BETTER)
    story.settle()
    story.fail(1, "a")
    story.settle()

    assert [(1, "added"), (1, "ready"), (2, "added")] == states(story)


def test_a_mesh_that_was_stopped_during_a_rollout_takes_both_up(story: Story) -> None:
    story.deploy("m", BETTER)
    story.settle()
    story.ready(3, "c")
    story.settle()
    assert [(1, "ready"), (2, "added"), (2, "ready")] == states(story)

    restart_mesh(story)
    story.ready(4, "d")
    story.settle()

    assert [(2, "ready"), (2, "ready")] == states(story)


def test_a_lost_node_takes_nothing_from_what_is_kept(story: Story) -> None:
    failed(story)

    story.lose("a")
    story.settle()
    story.ready(of_revision(story, 1)[-1].number, "c")
    story.settle()

    assert [(1, "ready"), (1, "ready")] == states(story)


@pytest.mark.parametrize("given_up", [True, False], ids=["given up", "still loading"])
def test_a_drain_replaces_what_is_kept_by_its_own(story: Story, *, given_up: bool) -> None:
    story.deploy("m", BAD)
    story.settle()
    if given_up:
        fail_newest(story)

    story.drain("a")
    story.settle()
    new = of_revision(story, 1)[-1]
    assert (1, "added") == (new.revision, new.state)
    assert 1 in story.numbers()
    story.ready(new.number, "d")
    story.settle()

    assert [(1, "ready"), (1, "ready")] == [each for each in states(story) if each[0] == 1]
    assert 1 not in story.numbers()


def test_a_drain_waits_for_what_only_the_kept_revision_can_have_elsewhere(story: Story) -> None:
    failed(story, simulated(2, selector={"zone": "nowhere"}, engine_args={"fail_load": "bogus"}))

    story.drain("a")
    story.settle()

    assert [(1, "added"), (1, "ready"), (1, "ready")] == states(story)


def test_what_is_spread_over_nodes_leaves_with_the_first_that_drains(story: Story) -> None:
    view = story.replica(1)
    spread = replace(
        view, members=tuple(Member(node=story.id(name), rank=rank, devices=()) for rank, name in enumerate("ca"))
    )
    story.drain("a")
    time = story.clock.tick(story.log.now)

    assessment = assess(story.state, story.model(), spread, story.model().newest, time)

    assert "a drains" == assessment.why


def test_two_revisions_that_lack_replicas_at_once_get_numbers_of_their_own(story: Story) -> None:
    story.deploy("m", BETTER)
    story.fail(1, "a", "signal 9")

    story.settle()

    added = [id for scaled in story.scaled() for id in scaled.add]
    assert len(set(added)) == len(added)
    assert [(1, "added"), (1, "ready"), (2, "added")] == states(story)


# half a rollout


def test_a_revision_of_which_half_was_ready_gives_its_place_back(story: Story) -> None:
    story.deploy("m", BETTER)
    story.settle()
    story.ready(3, "c")
    story.settle()
    assert [(1, "ready"), (2, "added"), (2, "ready")] == states(story)

    story.fail(4, "d", permanent=True)
    story.settle()
    # what serves of it stays until one of the kept revision serves in its place
    assert [(1, "added"), (1, "ready"), (2, "ready")] == states(story)
    story.ready(5, "a")
    story.settle()

    assert [(1, "ready"), (1, "ready")] == states(story)
    assert "revision 2 can't be served, revision 1 is kept; others serve" == story.scaled()[-1].why


def test_what_a_rollout_took_from_the_kept_revision_is_given_back_when_the_new_one_dies(story: Story) -> None:
    story.deploy("m", BETTER)
    story.settle()
    story.ready(3, "c")
    story.settle()

    story.fail(3, "c", "signal 9")
    story.settle()

    assert [(1, "added"), (1, "ready"), (2, "added")] == states(story)


def test_a_revision_that_was_whole_once_is_kept_though_one_of_it_fails_later(story: Story) -> None:
    story.deploy("m", BETTER)
    for number, node in ((3, "c"), (4, "d")):
        story.settle()
        story.ready(number, node)
    story.settle()
    assert [(2, "ready"), (2, "ready")] == states(story)

    story.fail(3, "c")
    story.settle()

    assert [(2, "added"), (2, "ready")] == states(story)


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (1, 3), (2, 0)])
def test_the_kept_revision_keeps_its_own_number_while_another_one_is_asked_for(before: int, after: int) -> None:
    story = Story()
    story.node("a", "b", "c", "d")
    story.deploy("m", simulated(before))
    story.settle()
    for number in range(1, before + 1):
        story.ready(number, "abcd"[number % 4])
    story.settle()

    failed(story, simulated(after, engine_args={"fail_load": "bogus"}))
    assert before * [(1, "ready")] == states(story)
    story.fail(1, story.wanted()[0].members[0].node.removeprefix("n-"))
    story.settle()

    assert [(1, "added"), *(before - 1) * [(1, "ready")]] == states(story)


# what comes after


def test_a_third_revision_that_is_good_replaces_the_kept_one(story: Story) -> None:
    failed(story)
    story.deploy("m", BETTER)
    story.settle()
    assert [(1, "ready"), (1, "ready"), (3, "added")] == states(story)

    for _ in range(2):
        story.ready(of_revision(story, 3)[-1].number, "d")
        story.settle()

    assert [(3, "ready"), (3, "ready")] == states(story)


def test_two_failed_revisions_leave_the_first(story: Story) -> None:
    failed(story)
    failed(story, BAD.model_copy(update={"concurrency": 7}))

    story.fail(2, "b")
    story.settle()

    assert [(1, "added"), (1, "ready")] == states(story)


def test_going_back_to_the_spec_of_before_changes_no_replica(story: Story) -> None:
    failed(story)

    request = story.deploy("m", GOOD)
    said = story.settle()

    assert isinstance(story.answer(request), Fulfilled)
    assert not [fact for fact in said if isinstance(fact, Scaled)]
    assert (3, 3, {}) == (story.model().revision, story.model().established, story.model().given_up)


def test_a_retry_tries_the_failed_one_again_beside_the_kept_one(story: Story) -> None:
    failed(story)

    story.retry(story.model().id)
    story.settle()
    assert [(1, "ready"), (1, "ready"), (2, "added")] == states(story)
    fail_newest(story)

    assert [(1, "ready"), (1, "ready")] == states(story)


def test_a_retry_of_what_is_ready_as_a_whole_by_then_establishes_it(story: Story) -> None:
    story.node("e")
    story.deploy("m", simulated(3))
    story.settle()
    story.fail(3, "c", permanent=True)  # the log says it before any answer
    story.log.given(subjects.model(story.model().id), Unservable(revision=2, reason="crashed"))
    story.log.given(
        subjects.model(story.model().id), Scaled(revision=1, add=(replica_id(story.model().id, 4),), why="")
    )
    story.ready(4, "e")
    assert (1, 3) == (story.model().established, len(story.model().ready))

    story.retry(story.model().id)
    story.settle()

    assert 2 == story.model().established


def test_deploying_the_failed_spec_again_tries_it_again(story: Story) -> None:
    failed(story)

    story.deploy("m", BAD)
    story.settle()

    assert [(1, "ready"), (1, "ready"), (3, "added")] == states(story)


def test_a_deleted_model_with_a_failed_revision_is_gone(story: Story) -> None:
    failed(story)

    story.delete(story.model().id)
    story.settle()

    assert [] == [view for view in story.state.fleet.replicas.values() if view.wanted]


def test_a_model_is_unservable_when_the_kept_revision_fails_for_good_too(story: Story) -> None:
    failed(story)
    assert story.model().unservable is None

    story.fail(1, "a", "the file is cut off", permanent=True)
    story.settle()

    assert "the file is cut off" == story.model().unservable
    assert [2] == story.numbers()
    story.fail(2, "b")
    assert [] == [fact for fact in story.settle() if isinstance(fact, Scaled) and fact.add]


def test_failures_of_the_new_revision_say_nothing_about_the_kept_one(story: Story) -> None:
    story.deploy("m", BAD)
    story.settle()
    for node in ("b", "c", "d"):
        story.fail(of_revision(story, 2)[0].number, node)
        story.settle()
    assert {2: "out of memory"} == story.model().given_up

    story.fail(1, "a")
    story.settle()

    assert ("n-a",) == of_revision(story, 1)[-1].avoid


def test_where_the_kept_revision_failed_is_avoided_though_another_one_is_asked_for(story: Story) -> None:
    story.fail(1, "a")
    story.settle()
    story.deploy("m", BETTER)

    story.fail(2, "b")
    story.settle()

    kept = [fact for fact in story.scaled() if fact.revision == 1 and fact.add]
    assert ("n-a", "n-b") == kept[-1].avoid


def test_a_revision_is_given_up_for_the_latest_failure_on_whatever_node(story: Story) -> None:
    story.deploy("m", BETTER)
    story.settle()
    for node in ("d", "c", "a"):
        story.sleep(1)
        story.fail(of_revision(story, 2)[0].number, node, f"no memory on {node}")
        story.settle()

    assert ["no memory on a"] == story.unservable()


def test_nodes_are_asked_about_the_files_of_the_kept_revision_too() -> None:
    story = Story()
    story.node("a", builtins=("tiny", "other"))
    story.deploy("m", builtin())
    story.settle()
    story.inspect("a", WEIGHTS)
    story.settle()
    story.ready(1, "a")
    story.deploy("m", builtin("other"))
    story.settle()
    story.inspect("a", WEIGHTS)
    story.settle()

    story.node("b")
    story.settle()

    assert {"builtin:tiny", "builtin:other"} == {asked.source for asked in story.questions("b")}


def test_what_never_was_whole_is_kept_as_far_as_it_answered() -> None:
    story = Story()
    story.node("a", "b")
    story.deploy("m", simulated(3))
    story.settle()
    story.ready(1, "a")
    story.ready(2, "b")
    failed(story)

    story.fail(1, "a")
    story.settle()

    assert 3 == len(of_revision(story, 1))


def test_a_first_revision_that_never_answered_gives_way_to_the_next() -> None:
    story = Story()
    story.node("a")
    story.deploy("m", GOOD)
    story.settle()

    story.deploy("m", BETTER)
    story.settle()

    assert [(2, "added"), (2, "added")] == states(story)


# the rule

SPECS = (GOOD, BAD, BETTER, simulated(1, concurrency=5), simulated(3, concurrency=3))
happenings = st.lists(
    st.tuples(
        st.sampled_from(("deploy", "ready", "fail", "fail for good", "die", "shut down", "retry", "lose", "find")),
        st.integers(0, 11),
    ),
    max_size=30,
)


def happen(story: Story, what: str, which: int) -> None:
    node = "abcd"[which % 4]
    unready = [view for view in story.wanted() if view.state != "ready"]
    ready = [view for view in story.wanted() if view.state == "ready"]
    match what:
        case "deploy":
            story.deploy("m", SPECS[which % len(SPECS)])
        case "retry":
            story.retry(story.model().id)
        case "lose":
            story.lose(node)
        case "find":
            story.find(node)
        case "die" | "shut down" if ready:
            view = ready[which % len(ready)]
            place = view.members[0].node.removeprefix("n-")
            _ = story.shut_down(view.number, place) if what == "shut down" else story.fail(view.number, place)
        case "ready" | "fail" | "fail for good" if unready:
            view = unready[which % len(unready)]
            place = view.members[0].node.removeprefix("n-") if view.members else node
            if what == "ready":
                story.ready(view.number, place)
            else:
                story.fail(view.number, place, permanent=what == "fail for good")
        case _:
            pass


@given(happenings)
@example([("deploy", 1), ("ready", 0), ("lose", 0), ("deploy", 0)])
@example([("deploy", 4), ("ready", 0), ("ready", 0), ("deploy", 0)])
@example([("deploy", 1), ("lose", 1), ("ready", 1), ("deploy", 0), ("fail for good", 0)])
@example([("deploy", 4), ("ready", 0), ("ready", 0), ("fail for good", 0)])
@settings(max_examples=120, deadline=None)
def test_whatever_happens_as_many_answer_or_are_on_their_way_as_the_kept_revision_had(
    history: list[tuple[str, int]],
) -> None:
    story = Story()
    story.node("a", "b", "c", "d")
    story.deploy("m", GOOD)
    story.settle()
    story.ready(1, "a")
    story.ready(2, "b")
    story.settle()
    for what, which in history:
        before = {view.id for view in story.wanted() if view.state == "ready" and not view.gone}
        happen(story, what, which)
        still = before & {view.id for view in story.wanted() if view.state == "ready" and not view.gone}
        facts = story.settle()

        # what is kept was whole once, and only a whole one replaces it
        model = story.model()
        kept = model.kept
        assert kept is not None
        there = [view for view in story.wanted() if model.of(view.revision).runs_as(kept)]
        # what was superseded, or is of a revision that failed, answers until it is replaced, one after another
        others = [view for view in story.wanted() if view.state == "ready" and not view.gone]
        if model.newest.number not in model.given_up:
            others += [view for view in story.wanted() if model.of(view.revision).runs_as(model.newest)]
        if kept.number not in model.given_up:
            assert len({view.id for view in (*there, *others)}) >= kept.least
        # nothing that answers is retired but where enough others do
        retired = {id for fact in facts if isinstance(fact, Scaled) for id in fact.retire}
        if still & retired:
            answering = [view for view in story.wanted() if view.state == "ready"]
            assert len(answering) >= min(kept.least, model.current.least)


@given(happenings)
@settings(max_examples=60, deadline=None)
def test_what_is_established_is_what_a_look_at_every_position_of_the_log_says(history: list[tuple[str, int]]) -> None:
    story = Story()
    story.node("a", "b", "c", "d")
    story.deploy("m", GOOD)
    story.settle()
    for what, which in history:
        happen(story, what, which)
        story.settle()

    state, expected = State(), None
    for commit in story.log.commits:
        state.apply(commit)
        model = state.fleet.model_named("m")
        if model is None:
            continue
        newest = model.newest
        ready = [each for each in state.fleet.replicas.values() if each.state == "ready"]
        of_newest = [each for each in ready if model.of(each.revision).runs_as(newest)]
        if len(of_newest) >= max(1, newest.spec.min_replicas) and newest.number not in model.given_up:
            expected = newest.number
        assert expected == model.established
