"""What the log says of a changed number of replicas: why, what it follows from, and where the new ones must not go."""

from weft_contracts.facts.model import Scaled

from .story import Story, simulated


def test_each_revision_has_the_reason_of_its_own_replicas(story: Story) -> None:
    # revision 2 took one place of revision 1, and is superseded before it took the other
    story.deploy("m", simulated(2, concurrency=3))
    story.settle()
    story.ready(3, "c")
    story.settle()

    story.deploy("m", simulated(3, concurrency=5))
    said = [fact for fact in story.settle() if isinstance(fact, Scaled) and fact.add]

    assert {1: "2 wanted, 1 there", 3: "revision 3 replaces revision 2"} == {fact.revision: fact.why for fact in said}


def test_what_nothing_asks_for_goes_because_none_is_wanted() -> None:
    story = Story()
    story.node("a")
    story.deploy("m", simulated(1))
    story.settle()

    story.deploy("m", simulated(0, 2))
    story.settle()

    assert "more than the 0 wanted" == story.scaled()[-1].why


def test_what_is_retired_follows_from_what_now_serves_in_its_place_whatever_its_revision(story: Story) -> None:
    story.deploy("m", simulated(2, concurrency=3))
    story.settle()
    story.drain("a")
    story.settle()
    replacement = next(view for view in reversed(story.wanted()) if view.revision == 1)

    ready = story.ready(replacement.number, "d")
    story.settle()

    last = next(commit for commit in reversed(story.log.commits) if isinstance(commit.facts[0], Scaled))
    assert ((story.replica(1).id,), ready.event_id) == (story.scaled()[-1].retire, last.causation_id)


def test_only_what_is_added_is_kept_off_a_node(story: Story) -> None:
    story.unload("m", "a")
    story.settle()
    added = story.scaled()[-1]
    story.ready(3, "c")
    story.settle()
    retired = story.scaled()[-1]

    assert [("n-a",), ()] == [added.avoid, retired.avoid]
    assert ((), (story.replica(1).id,)) == (retired.add, retired.retire)
