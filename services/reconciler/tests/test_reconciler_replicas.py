"""How many replicas there are: the minimum, the lost, the failed, the old, the drained."""

import pytest
from weft_contracts import subjects
from weft_contracts.codec import encode
from weft_contracts.commit import Cause, Commit
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.model import Retried
from weft_contracts.facts.node import Unhealthy, WentOffline
from weft_contracts.facts.replica import Evicted
from weft_contracts.facts.request import Fulfilled
from weft_contracts.facts.run import Loading
from weft_contracts.ids import CorrelationId, Incarnation, NodeId
from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.offline_nodes import OfflineNodes

from .story import WEIGHTS, Story, builtin, path, simulated


@pytest.fixture
def story() -> Story:
    """Three nodes, and replica 1 of model m, which wants one, ready on a."""
    story = Story()
    story.node("a", "b", "c")
    story.deploy("m", simulated())
    story.settle()
    story.ready(1, "a")
    story.settle()
    story.pass_time(60)
    return story


def brake(story: Story) -> None:
    story.log.given(subjects.MESH, BrakeSet(silent=2, healthy_before=3))


def lift_brake(story: Story) -> None:
    story.log.given(subjects.MESH, BrakeLifted(why="the leases returned"))


# the number


@pytest.mark.parametrize(("least", "most", "expected"), [(1, 1, 1), (2, 4, 2), (0, 1, 0), (3, 0, 3), (40, 0, 40)])
def test_a_model_gets_its_minimum(least: int, most: int, expected: int) -> None:
    story = Story()
    story.node("a")
    story.deploy("m", simulated(least, most))

    story.settle()

    assert list(range(1, expected + 1)) == story.numbers()
    assert all(len(scaled.add) <= 32 for scaled in story.scaled())


def test_a_raised_minimum_adds_and_a_lowered_maximum_retires_the_newest(story: Story) -> None:
    story.deploy("m", simulated(3))
    story.settle()
    assert [1, 2, 3] == story.numbers()
    for number, node in ((2, "b"), (3, "c")):
        story.ready(number, node)
    story.settle()

    story.deploy("m", simulated(1, 2))
    story.settle()

    assert [1, 2] == story.numbers()


def test_what_never_served_goes_when_it_is_no_longer_wanted(story: Story) -> None:
    story.deploy("m", simulated(3))
    story.settle()

    story.deploy("m", simulated(1, 3))
    story.settle()

    assert [1] == story.numbers()


# lost and found


def test_a_group_that_lost_a_node_is_retired_at_once_since_what_it_holds_is_what_the_next_one_needs() -> None:
    story = Story()
    story.node("a", "b", "c")
    story.deploy("m", simulated())
    story.settle()
    story.place(1, "a", beside="b")
    story.ready(1, "a")
    story.ready(1, "b")
    story.settle()
    story.pass_time(60)
    assert "ready" == story.replica(1).state
    # when
    story.lose("b")
    story.settle()
    # then
    assert [2] == story.numbers()
    assert f"{story.replica(1).id} is lost: b is offline" in story.scaled()[-1].why


def test_a_lost_replica_is_replaced_first_and_retired_when_the_new_one_is_ready(story: Story) -> None:
    offline = story.lose("a")
    story.settle()
    assert [1, 2] == story.numbers()
    assert offline.event_id == story.log.commits[-1].causation_id

    story.ready(2, "b")
    story.settle()

    assert [2] == story.numbers()
    assert f"{story.replica(1).id} is lost: a is offline; others serve" == story.scaled()[-1].why


def test_a_return_before_the_replacement_is_ready_retires_the_replacement(story: Story) -> None:
    story.lose("a")
    story.settle()
    story.place(2, "b")
    story.settle()

    story.find("a")
    story.settle()

    assert [1] == story.numbers()


def test_a_return_after_the_replacement_is_ready_keeps_the_replacement(story: Story) -> None:
    story.lose("a")
    story.settle()
    story.ready(2, "b")
    story.settle()

    story.find("a")
    story.settle()

    assert [2] == story.numbers()


def test_while_the_brake_is_set_nothing_is_replaced(story: Story) -> None:
    brake(story)
    story.lose("a")
    story.lose("b")
    assert [] == story.pass_time(90)

    lift_brake(story)
    story.settle()

    assert [1, 2] == story.numbers()


def test_a_brake_that_lifts_when_the_leases_return_changes_nothing(story: Story) -> None:
    brake(story)
    story.lose("a")
    story.lose("b")
    story.pass_time(90)

    story.find("a")
    story.find("b")
    lift_brake(story)

    assert [] == story.settle()


def test_a_brake_that_is_set_while_a_replacement_loads_keeps_both(story: Story) -> None:
    story.lose("a")
    story.settle()
    story.place(2, "b")

    brake(story)

    assert [] == story.pass_time(60)
    assert [1, 2] == story.numbers()


def test_a_replacement_on_a_silent_node_does_not_count_as_ready(story: Story) -> None:
    story.lose("a")
    story.settle()
    story.ready(2, "b")
    story.say("b", Unhealthy(silent_for=4.2))
    assert [] == story.settle()

    story.find("b")
    story.settle()

    assert [2] == story.numbers()


def test_a_removed_nodes_replica_is_replaced_and_retired_at_once(story: Story) -> None:
    story.remove("a")

    story.settle()

    assert [2] == story.numbers()


def test_an_evicted_replica_is_retired_and_the_minimum_kept(story: Story) -> None:
    story.log.given(subjects.replica(story.replica(1).id), Evicted(why="room"))

    story.settle()

    assert [2] == story.numbers()


def test_an_unhealthy_node_loses_nothing(story: Story) -> None:
    story.say("a", Unhealthy(silent_for=4.2))

    assert [] == story.pass_time(90)


# restarts


def test_a_mesh_that_went_down_in_order_comes_back_with_the_same_replicas(story: Story) -> None:
    story.shut_down(1, "a")
    story.lose("a")
    story.sleep(3600)

    assert [] == story.pass_time(20)
    story.find("a")
    story.ready(1, "a")

    assert [] == story.pass_time(60)
    assert [1] == story.numbers()


def test_an_old_revision_that_went_down_in_order_stays_until_the_new_one_serves(story: Story) -> None:
    story.deploy("m", simulated(context_tokens=512))
    story.settle()
    story.shut_down(1, "a")
    story.sleep(3600)
    story.settle()
    assert [1, 2] == story.numbers()

    story.ready(2, "b")
    story.settle()

    assert [2] == story.numbers()


def test_a_node_that_does_not_come_back_after_a_restart_is_lost_after_the_grace(story: Story) -> None:
    story.lose("a")
    story.sleep(3600)

    story.pass_time(40)

    assert [1, 2] == story.numbers()


@pytest.mark.parametrize(("looked_for", "lost"), [(29.0, False), (30.0, True)])
def test_a_node_that_was_offline_before_is_lost_once_it_was_looked_for_during_the_grace(
    looked_for: float, lost: bool
) -> None:
    offline = OfflineNodes()
    offline.note(NodeId("n-a"), WentOffline(silent_for=7), 1000.0, Cause(CorrelationId("c")))

    assert lost == offline.is_lost(NodeId("n-a"), DecisionTime(5000.0 + looked_for, since=5000.0))


def test_an_engine_that_its_agent_starts_again_is_not_replaced(story: Story) -> None:
    story.run(1, "a", Loading(epoch=1, incarnation=Incarnation("i-2")))

    assert [] == story.pass_time(90)


# failures


def test_a_failed_replica_is_replaced_elsewhere(story: Story) -> None:
    failed = story.fail(1, "a")

    story.settle()

    assert [2] == story.numbers()
    assert ("n-a",) == story.replica(2).avoid
    scaled = story.log.commits[-1]
    assert failed.event_id == scaled.causation_id
    assert f"{story.replica(1).id} failed on a: out of memory" == story.scaled()[-1].why


def test_a_failure_that_is_permanent_makes_the_model_unservable_with_the_engines_reason(
    story: Story,
) -> None:
    story.fail(1, "a", "x.gguf is cut off at byte 12", permanent=True)

    story.settle()

    assert ["x.gguf is cut off at byte 12"] == story.unservable()
    assert [] == story.numbers()
    assert [] == story.pass_time(7200)


def test_what_an_engine_says_at_length_still_fits_into_a_commit(story: Story) -> None:
    story.fail(1, "a", "x" * 60_000, permanent=True)

    story.settle()

    aggregate = subjects.model(story.model().id)
    assert 2000 == len(story.unservable()[0])
    assert len(encode(Commit(aggregate, story.log.commits[-1].facts, None, story.model().cause))) < 4000


def test_failures_on_three_nodes_make_the_model_unservable(story: Story) -> None:
    story.node("d", "e")
    for number, node in ((1, "a"), (2, "b"), (3, "c")):
        story.fail(number, node, f"crashed on {node}")
        story.settle()

    assert ["crashed on c"] == story.unservable()
    assert [] == story.numbers()


def test_a_failure_on_the_only_node_that_could_run_it_is_enough() -> None:
    story = Story()
    story.node("a", labels={"zone": "x"})
    story.node("b")
    story.node("c", labels={"zone": "x"}, engines=("llama.cpp",))
    story.deploy("m", simulated(selector={"zone": "x"}))
    story.settle()

    story.fail(1, "a")
    story.settle()

    assert ["out of memory"] == story.unservable()


def test_a_failure_on_the_only_node_that_holds_the_file_is_enough() -> None:
    story = Story()
    story.node("a", "b", "c")
    story.deploy("m", path("/x.gguf"))
    story.settle()
    story.inspect("a", WEIGHTS)
    story.inspect("b", "not there")
    story.inspect("c", WEIGHTS.model_copy(update={"layers": 3}))
    story.settle()

    story.fail(1, "a")
    story.settle()

    assert ["out of memory"] == story.unservable()


def test_what_serves_goes_on_serving_when_a_model_is_given_up(story: Story) -> None:
    story.deploy("m", simulated(2))
    story.settle()

    story.fail(2, "b", permanent=True)
    story.settle()

    assert [1] == story.numbers()
    assert 1 == len(story.unservable())


def test_a_retry_lifts_unservable_and_tries_again_everywhere(story: Story) -> None:
    story.fail(1, "a", permanent=True)
    story.settle()

    request = story.retry(story.model().id)
    story.settle()

    assert isinstance(story.answer(request), Fulfilled)
    assert [2] == story.numbers()
    assert () == story.replica(2).avoid


def test_a_retry_of_what_is_not_given_up_changes_nothing(story: Story) -> None:
    request = story.retry(story.model().id)

    story.settle()

    assert isinstance(story.answer(request), Fulfilled)
    assert not any(isinstance(fact, Retried) for fact in story.log.facts())


def test_a_retry_asks_again_where_the_file_was_missing() -> None:
    story = Story()
    story.node("a", "b")
    story.deploy("m", builtin())
    story.settle()
    story.inspect("a", WEIGHTS)
    story.inspect("b", "not there")
    story.settle()
    story.fail(1, "a", permanent=True)
    story.settle()

    story.retry(story.model().id)
    story.settle()

    assert (1, 2) == (len(story.questions("a")), len(story.questions("b")))


def test_deploying_an_unservable_model_again_tries_it_again(story: Story) -> None:
    story.fail(1, "a", permanent=True)
    story.settle()

    story.deploy("m", simulated())
    story.settle()

    assert 2 == story.model().revision
    assert [2] == story.numbers()


def test_a_failure_of_long_ago_no_longer_counts(story: Story) -> None:
    for number, node in ((1, "a"), (2, "b"), (3, "c")):
        story.fail(number, node)
        story.settle()
        story.pass_time(3600)

    assert [] == story.unservable()
    assert () != story.replica(4).avoid


def test_a_failure_counts_for_an_hour_and_not_a_moment_longer(story: Story) -> None:
    story.fail(1, "a")
    failed_at, model = story.log.commits[-1].at, story.model()

    def counts(after: float) -> bool:
        time = DecisionTime(failed_at + after, since=0.0)
        return story.id("a") in story.state.failures.recent(model, model.newest, time)

    assert [True, False] == [counts(3599.0), counts(3600.0)]


@pytest.fixture
def waiting() -> Story:
    """Replica 1 of model m failed on b, replica 2 avoids b and has no place: a, the other node, drains."""
    story = Story()
    story.node("a", "b")
    story.deploy("m", simulated())
    story.settle()
    story.drain("a")
    story.fail(1, "b")
    story.settle()
    story.find_no_place(2)
    story.settle()
    assert ([2], (story.id("b"),)) == (story.numbers(), story.replica(2).avoid)
    return story


def test_what_has_no_place_may_go_where_one_failed_once_that_counts_no_more(waiting: Story) -> None:
    waiting.pass_time(3590)
    assert [2] == waiting.numbers()

    waiting.pass_time(20)

    assert ([3], ()) == (waiting.numbers(), waiting.replica(3).avoid)
    assert f"{waiting.replica(2).id} has no place, and b, where one failed, may be tried again" == (
        waiting.scaled()[-1].why
    )


def test_what_has_no_place_may_go_where_one_failed_once_another_revision_begins(waiting: Story) -> None:
    waiting.schedule(max_replicas=2)
    waiting.settle()

    assert ([3], ()) == (waiting.numbers(), waiting.replica(3).avoid)


def test_while_the_brake_holds_what_has_no_place_waits(waiting: Story) -> None:
    waiting.log.given(subjects.MESH, BrakeSet(silent=2, healthy_before=3))
    waiting.pass_time(3700)
    assert [2] == waiting.numbers()

    waiting.log.given(subjects.MESH, BrakeLifted(why="admin"))
    waiting.pass_time(5)

    assert [3] == waiting.numbers()


def test_what_has_no_place_keeps_off_the_node_that_it_was_unloaded_from(story: Story) -> None:
    story.unload("m", "a", deadline_s=30)
    story.pass_time(3700)

    assert (story.id("a"),) == story.replica(story.numbers()[-1]).avoid


# revisions


def test_a_new_revision_replaces_the_old_when_it_is_ready(story: Story) -> None:
    story.deploy("m", simulated(context_tokens=512))
    story.settle()
    assert [1, 2] == story.numbers()
    assert 2 == story.replica(2).revision

    story.ready(2, "b")
    story.settle()

    assert [2] == story.numbers()
    assert "revision 2 replaces revision 1; others serve" == story.scaled()[-1].why


def test_a_rollout_goes_one_by_one_and_never_below_the_minimum() -> None:
    story = Story()
    story.node("a", "b", "c")
    story.deploy("m", simulated(3))
    story.settle()
    for number, node in ((1, "a"), (2, "b"), (3, "c")):
        story.ready(number, node)
    story.settle()

    seen: list[list[int]] = []
    story.deploy("m", simulated(3, concurrency=2))
    for number in (4, 5, 6):
        story.settle()
        seen.append(story.numbers())
        story.ready(number, "a")
    story.settle()

    assert [[1, 2, 3, 4], [1, 2, 4, 5], [1, 4, 5, 6]] == seen
    assert [4, 5, 6] == story.numbers()


def test_a_revision_with_the_same_digest_keeps_its_replicas(story: Story) -> None:
    story.deploy("m", simulated(1, 3))

    story.settle()

    assert (2, [1]) == (story.model().revision, story.numbers())


def test_a_replica_that_loads_when_its_spec_changes_never_serves() -> None:
    story = Story()
    story.node("a")
    story.deploy("m", simulated())
    story.settle()
    story.place(1, "a")
    story.settle()

    story.deploy("m", simulated(context_tokens=512))
    story.settle()

    assert [2] == story.numbers()


def test_a_revision_that_fails_leaves_the_old_one_serving(story: Story) -> None:
    story.deploy("m", simulated(context_tokens=512))
    story.settle()

    story.fail(2, "b", permanent=True)
    story.settle()

    assert [1] == story.numbers()
    assert 1 == len(story.unservable())


# drains


def test_a_draining_node_is_emptied_when_its_replacement_is_ready(story: Story) -> None:
    drained = story.drain("a")
    story.settle()
    assert [1, 2] == story.numbers()
    assert drained.event_id == story.log.commits[-1].causation_id

    story.ready(2, "b")
    story.settle()

    assert [2] == story.numbers()


def test_a_replacement_that_does_not_come_is_waited_for_during_half_of_the_deadline(story: Story) -> None:
    story.drain("a", deadline_s=60)
    story.pass_time(25)
    assert [1, 2] == story.numbers()

    story.pass_time(10)

    assert [2] == story.numbers()


@pytest.mark.parametrize("how", ["lost", "removed", "draining"])
def test_where_no_other_node_is_left_nothing_waits_for_a_replacement(story: Story, how: str) -> None:
    for other in ("b", "c"):
        {"lost": story.lose, "removed": story.remove, "draining": story.drain}[how](other)
    story.settle()

    story.drain("a", deadline_s=60)
    story.settle()

    assert [2] == story.numbers()


def test_what_no_other_node_could_run_waits_for_no_replacement() -> None:
    story = Story()
    story.node("a", labels={"zone": "x"})
    story.node("b")
    story.deploy("m", simulated(selector={"zone": "x"}))
    story.settle()
    story.ready(1, "a")
    story.settle()

    story.drain("a", deadline_s=60)
    story.settle()

    assert [2] == story.numbers()


def test_a_drain_that_is_lifted_keeps_what_served(story: Story) -> None:
    story.drain("a")
    story.settle()

    story.resume("a")
    story.settle()

    assert [1] == story.numbers()


def test_what_was_about_to_load_on_a_draining_node_goes_at_once() -> None:
    story = Story()
    story.node("a", "b")
    story.deploy("m", simulated())
    story.settle()
    story.place(1, "a")

    story.drain("a")
    story.settle()

    assert [2] == story.numbers()


def test_a_deleted_models_replicas_are_all_retired_by_one_commit_that_names_none(story: Story) -> None:
    story.deploy("m", simulated(3))
    story.settle()
    replicas, scaled = story.wanted(), story.scaled()

    story.delete(story.model().id)
    story.settle()

    assert scaled == story.scaled()
    assert [False] * 3 == [story.state.fleet.replicas[view.id].wanted for view in replicas]
    assert [] == story.pass_time(90)
