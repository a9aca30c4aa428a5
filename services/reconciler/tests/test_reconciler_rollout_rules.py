"""Whatever happens in a rollout, and whatever it may do: never fewer than it may miss, never more than it may have, and
each decision comes out again from its receipt."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.model import Scaled
from weft_reconciler.domain.verify import verify

from .story import Story, simulated

SPECS = (
    simulated(2),
    simulated(2, concurrency=3),
    simulated(3, concurrency=5),
    simulated(2, selector={"zone": "nowhere"}),
)
RULES = (
    {"max_surge": 1, "max_unavailable": 0},
    {"max_surge": 0, "max_unavailable": 1},
    {"max_surge": 1, "max_unavailable": 1},
    {"max_surge": 3, "max_unavailable": 0},
    {"max_surge": 0, "max_unavailable": 2, "progress_s": 60},
    {"progress_s": 60},
)
WHAT = ("deploy", "rules", "ready", "no place", "fail", "fail for good", "die", "shut down", "lose", "find", "wait")
happenings = st.lists(
    st.tuples(st.sampled_from((*WHAT, "rollback", "retry", "brake", "lift")), st.integers(0, 11)), max_size=25
)


def happen(story: Story, what: str, which: int) -> None:
    node = "abcd"[which % 4]
    unready = [view for view in story.wanted() if view.state != "ready"]
    ready = [view for view in story.wanted() if view.state == "ready"]
    match what:
        case "deploy":
            story.deploy("m", SPECS[which % len(SPECS)])
        case "rules":
            story.schedule(**RULES[which % len(RULES)])
        case "rollback":
            story.rollback(which % 3 or None)
        case "retry":
            story.retry(story.model().id)
        case "lose":
            story.lose(node)
        case "find":
            story.find(node)
        case "brake":
            story.log.given(subjects.MESH, BrakeSet(silent=2, healthy_before=4))
        case "lift":
            story.log.given(subjects.MESH, BrakeLifted(why="over"))
        case "wait":
            story.pass_time(10 * (which + 1))
        case "die" | "shut down" if ready:
            view = ready[which % len(ready)]
            place = view.members[0].node.removeprefix("n-")
            _ = story.shut_down(view.number, place) if what == "shut down" else story.fail(view.number, place)
        case "ready" | "no place" | "fail" | "fail for good" if unready:
            view = unready[which % len(unready)]
            place = view.members[0].node.removeprefix("n-") if view.members else node
            if what == "no place":
                if view.placed is None:
                    story.find_no_place(view.number)
            elif what == "ready":
                story.ready(view.number, place)
            else:
                story.fail(view.number, place, permanent=what == "fail for good")
        case _:
            pass


@given(happenings)
@example([("rules", 1), ("deploy", 1), ("ready", 0), ("ready", 0)])
@example([("rules", 2), ("deploy", 1), ("no place", 0), ("lose", 0), ("wait", 3)])
@example([("rules", 4), ("deploy", 3), ("no place", 0), ("wait", 11), ("rollback", 1)])
@example([("rules", 1), ("deploy", 1), ("fail for good", 0), ("rollback", 0)])
@settings(max_examples=100, deadline=None)
def test_no_rollout_goes_below_what_it_may_miss_nor_above_what_it_may_have(history: list[tuple[str, int]]) -> None:
    story = Story()
    story.node("a", "b", "c", "d")
    story.deploy("m", simulated(2))
    story.settle()
    story.ready(1, "a")
    story.ready(2, "b")
    story.settle()
    for what, which in history:
        before = {view.id for view in story.wanted() if view.state == "ready" and not view.gone}
        start = story.log.head
        happen(story, what, which)
        before &= {view.id for view in story.wanted() if view.state == "ready" and not view.gone} | {
            id
            for commit in story.log.commits[start:]
            for fact in commit.facts
            if isinstance(fact, Scaled)
            for id in fact.retire
        }
        story.settle()
        model = story.model()
        kept = model.kept
        assert kept is not None
        scaled = [fact for commit in story.log.commits[start:] for fact in commit.facts if isinstance(fact, Scaled)]
        # what answers goes only where as many as may not be missing go on answering
        if before & {id for fact in scaled for id in fact.retire}:
            answering = [view for view in story.wanted() if view.state == "ready"]
            assert len(answering) >= min(kept.least, model.current.least) - model.rules.max_unavailable
        # and what comes beside them is no more than it may be
        if model.replacing and any(fact.add for fact in scaled) and what == "deploy":
            most = max(kept.least, model.newest.least) + max(1, model.rules.max_surge)
            assert len(story.wanted()) <= max(most, len(before) + 1)

    assert [] == verify(story.log.commits).mismatches
