"""A size's receipt and the log up to its position are enough to compute it again."""

from dataclasses import replace
from typing import Any

import pytest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.model import Sized, SpecAccepted
from weft_contracts.ids import ModelId
from weft_reconciler.domain.resize import Resize
from weft_reconciler.domain.sizing import computed_again
from weft_reconciler.domain.state import State

from .elastic import MINUTES, all_ready, an_elastic_model
from .story import Story


@pytest.fixture(scope="module", name="story")
def every_kind_of_size() -> Story:
    """Woken, grown twice, one fewer as few requests are left, grown as they make many tokens, one fewer as none is, and
    asleep again."""
    story = an_elastic_model(0, 4, ready=0)
    story.serve(3, loading=1)
    story.activate()
    story.settle()
    story.ready(1, "a")
    story.serve(15, running=1, gateways=("g", "h"))
    all_ready(story)
    story.serve(15, running=2, waiting=2, gateways=("g", "h"))
    all_ready(story)
    story.schedule(scaling={"tokens_per_s": 100})
    story.settle()
    story.serve(6 * MINUTES, running=1, tokens=20, gateways=("g", "h"))
    story.serve(15, running=1, tokens=150, gateways=("g", "h"))
    all_ready(story)
    story.serve(20 * MINUTES)
    return story


def sizes_of(story: Story) -> list[Sized]:
    return [fact for fact in story.log.facts() if isinstance(fact, Sized)]


def again(story: Story, fact: Sized, **changed: Any) -> Resize | None:
    """What the log up to the receipt's position comes to; `changed`: a field of every spec in the log."""
    state = State()
    for recorded in story.log.commits:
        if recorded.sequence <= fact.receipt.position:
            state.apply(replace(recorded, facts=_with(recorded.facts, changed)))
    return computed_again(state, state.fleet.models[ModelId(story.model().id)], fact.receipt)


def _with(facts: tuple[Fact, ...], changed: dict[str, Any]) -> tuple[Fact, ...]:
    return tuple(
        fact.model_copy(update={"spec": fact.spec.model_copy(update=changed)})
        if isinstance(fact, SpecAccepted)
        else fact
        for fact in facts
    )


def test_every_size_is_computed_again_from_its_receipt_and_the_log(story: Story) -> None:
    found = sizes_of(story)

    whys = " / ".join(fact.why for fact in found)
    for kind in ("a request waits for it", "all were busy", "tokens a second", "leave room", "nothing ran"):
        assert kind in whys
    for fact in found:
        assert Resize(fact.replicas, fact.places, fact.why) == again(story, fact)


def test_a_receipt_names_what_it_read_of_each_gateway_and_the_figures_that_it_went_by(story: Story) -> None:
    grown = next(fact for fact in sizes_of(story) if fact.why.startswith("all were busy"))
    receipt = grown.receipt
    assert [("g", 1, 0.0), ("h", 1, 0.0)] == [
        (each.gateway, each.running, each.age_s) for each in receipt.seen.gateways
    ]
    assert (3.0, 300.0, 0.3) == (receipt.policy.up_after_s, receipt.policy.down_after_s, receipt.policy.spare)
    assert 7 == receipt.seed
    assert 0 < receipt.position < story.log.head
    woken = sizes_of(story)[0]
    assert woken.receipt.seen.asked.startswith("q-")


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("all were busy", {"busy_s": 2.0}),
        ("all were busy", {"gateways": ()}),
        ("nothing ran", {"idle_s": 10.0}),
        ("nothing ran", {"known": False}),
        ("leave room", {"spare_s": 0.0}),
        ("leave room", {"tokens_per_s": None}),
        ("tokens a second", {"tokens_per_s": None}),
        ("tokens a second", {"tokens_per_s": 200.0}),
        ("a request waits", {"asked": ""}),
    ],
)
def test_a_changed_receipt_comes_to_something_else(story: Story, kind: str, changed: dict[str, Any]) -> None:
    fact = next(fact for fact in sizes_of(story) if fact.why.startswith(kind) or kind in fact.why)
    seen = fact.receipt.seen.model_copy(update=changed)
    forged = fact.model_copy(update={"receipt": fact.receipt.model_copy(update={"seen": seen})})
    assert Resize(fact.replicas, fact.places, fact.why) != again(story, forged)


def test_another_policy_or_another_spec_in_the_log_comes_to_something_else(story: Story) -> None:
    grown = next(fact for fact in sizes_of(story) if fact.why.startswith("all were busy"))
    decided = Resize(grown.replicas, grown.places, grown.why)
    policy = grown.receipt.policy.model_copy(update={"up_after_s": 60.0})
    forged = grown.model_copy(update={"receipt": grown.receipt.model_copy(update={"policy": policy})})
    assert decided != again(story, forged)
    assert decided != again(story, grown, concurrency=16)
    assert decided != again(story, grown, max_replicas=1)
    assert decided == again(story, grown)
