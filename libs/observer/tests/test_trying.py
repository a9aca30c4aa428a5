"""How often a handler is tried, and when a fact is given up."""

from collections.abc import Iterator

import pytest
from weft_observer import Happened, Later, Refused, trying
from weft_observer.trying import Trying
from weft_runtime.health import Health

from .given import happened


class Handler:
    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes: Iterator[Exception | None] = iter(outcomes)
        self.tries = 0

    async def __call__(self, _: Happened) -> None:
        self.tries += 1
        outcome = next(self.outcomes)
        if outcome is not None:
            raise outcome


@pytest.fixture
def health(monkeypatch: pytest.MonkeyPatch) -> Health:
    monkeypatch.setattr(trying, "MOST_S", 0.001)
    return Health()


async def test_it_is_tried_until_it_has_done_its_work_and_then_nothing_is_wrong(health: Health) -> None:
    handler = Handler(Later("busy"), OSError("torn"), None)
    assert await Trying(60, health).done(handler, happened())
    assert (3, {}) == (handler.tries, health.problems)


async def test_while_it_is_tried_in_vain_that_is_said_and_a_new_start_is_not_asked_for(health: Health) -> None:
    seen: list[dict[str, str]] = []

    async def handler(_: Happened) -> None:
        seen.append(health.problems)
        if len(seen) < 2:
            raise Later("127.0.0.1 answers 503")

    assert await Trying(60, health).done(handler, happened())
    assert {"handler": "tried 1 times in vain: 127.0.0.1 answers 503"} == seen[1]
    assert health.sound


@pytest.mark.parametrize(
    "outcomes", [[Refused("it answers 422")], [Later("away")] * 10_000], ids=["refused", "given up"]
)
async def test_a_dead_letter_is_counted_and_told(health: Health, outcomes: list[Exception]) -> None:
    handler = Handler(*outcomes)
    assert not await Trying(0.05, health).done(handler, happened())
    assert "1 since the start, the last one run.failed at 7" in health.problems["dead letters"]
    assert (handler.tries == 1) is (len(outcomes) == 1)
    assert not await Trying(0.05, health).done(Handler(Refused("x")), happened())
    assert "handler" not in health.problems
