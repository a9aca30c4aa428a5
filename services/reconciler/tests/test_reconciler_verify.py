"""What was decided about replicas comes out again from the log, and what was changed in it doesn't."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from weft_contracts.commit import Recorded
from weft_contracts.facts.model import RolledBack, Scaled, Sized, SpecAccepted
from weft_contracts.facts.run import Ready
from weft_reconciler.domain.verify import verify

from .elastic import all_ready, an_elastic_model
from .story import Story, simulated

Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
def log() -> list[Recorded]:
    """A model that grew and shrank, was rolled out with one that goes first, taken back by itself and by hand, and
    deleted."""
    story = an_elastic_model(1, 4, ready=1)
    story.serve(15, running=2, waiting=2)
    all_ready(story)
    story.serve(15, running=4, waiting=4)
    all_ready(story)
    story.serve(400)
    story.serve(400)
    story.schedule(min_replicas=2, max_unavailable=1, progress_s=120)
    story.settle()
    all_ready(story)
    story.deploy("m", simulated(2, 2, concurrency=3))
    story.settle()
    story.find_no_place(story.wanted()[-1].number)
    story.pass_time(200)
    story.fail(story.wanted()[0].number, story.wanted()[0].members[0].node.removeprefix("n-"))
    story.settle()
    all_ready(story)
    story.deploy("m", simulated(2, 2, concurrency=4))
    for _ in range(3):
        story.settle()
        all_ready(story)
    story.rollback()
    story.settle()
    story.delete(story.model().id)
    story.settle()
    return story.log.commits


def changed(log: list[Recorded], kind: type[Any], change: Change, which: int = 0) -> list[Recorded]:
    """The log with one of its facts changed."""
    left = which
    commits: list[Recorded] = []
    for commit in log:
        facts = list(commit.facts)
        for at, fact in enumerate(facts):
            if isinstance(fact, kind) and (new := change(fact)) is not fact:
                if left == 0:
                    facts[at] = new
                left -= 1
        commits.append(replace(commit, facts=tuple(facts)))
    assert left < 0, "nothing was changed"
    return commits


def fields(**fields: Any) -> Change:
    """Another value of some of a fact's fields."""

    def change(fact: Any) -> Any:
        return fact.model_copy(update=fields)

    return change


def of_receipt(**fields: Any) -> Change:
    def change(fact: Any) -> Any:
        return fact.model_copy(update={"receipt": fact.receipt.model_copy(update=fields)})

    return change


def test_all_that_was_decided_comes_out_again(log: list[Recorded]) -> None:
    found = verify(log)

    assert [] == found.mismatches
    assert {"sized": 5, "rolled_back": 2} == {kind: found.decisions[kind] for kind in ("sized", "rolled_back")}
    whys = [fact.why for commit in log for fact in commit.facts if isinstance(fact, Scaled)]
    assert len(whys) == found.decisions["scaled"]
    assert [why for why in whys if "goes first" in why]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Scaled, of_receipt(position=1)),
        (Scaled, of_receipt(position=10_000)),
        (Scaled, fields(why="so")),
        (Scaled, fields(wanted=7)),
        (RolledBack, of_receipt(decided_at=0.0)),
        (RolledBack, fields(to=7)),
        (Sized, fields(was=3)),
        (Sized, fields(replicas=3)),
    ],
)
def test_a_changed_decision_or_receipt_does_not(log: list[Recorded], kind: type[Any], change: Change) -> None:
    assert verify(changed(log, kind, change)).mismatches


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (SpecAccepted, fields(spec=simulated(3, 4, concurrency=2))),
        (Ready, fields(epoch=99)),
    ],
)
def test_nor_does_what_rests_on_a_changed_fact(log: list[Recorded], kind: type[Any], change: Change) -> None:
    assert verify(changed(log, kind, change)).mismatches


def test_what_was_written_before_there_were_receipts_is_passed_over() -> None:
    story = Story()
    story.node("a")
    story.deploy("m", simulated(1))
    story.settle()
    old = changed(story.log.commits, Scaled, fields(receipt=None, wanted=9))

    assert ([], 0) == (verify(old).mismatches, verify(old).decisions["scaled"])
