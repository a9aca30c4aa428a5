"""Of a constant demand a size goes one way and then stays, whatever starts slowly and whatever isn't heard of."""

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.facts.sizing import ScalingPolicy
from weft_placement.demand_board import DemandBoard
from weft_reconciler.domain.demand_watch import DemandWatch

from .story import Story, simulated

POLICY = ScalingPolicy(down_after_s=20, down_cooldown_s=8, up_cooldown_s=6, gone_s=60)
"""The default's shape in a shorter time."""
SECONDS = 240


@dataclass
class World:
    """One model under a demand that doesn't change."""

    demand: int
    concurrency: int
    bounds: tuple[int, int]
    began_with: int
    latencies: list[int]
    gaps: list[tuple[int, int]]
    gateways: int
    told: float = 0
    """Tokens a second that a replica is said to make at most; it makes `most`, and a request's part of it `each`."""
    most: int = 100
    each: int = 5
    owed: int = 0
    """Tokens that no gateway has told of yet."""
    story: Story = field(default_factory=Story)

    def run(self) -> list[tuple[int, int]]:
        """Every change of size."""
        story = self.story
        story.watch = DemandWatch(DemandBoard(POLICY))
        story.node("a")
        begun = max(self.began_with, 1)
        story.deploy("m", simulated(begun, begun, concurrency=self.concurrency))
        story.settle()
        for number in range(1, begun + 1):
            story.ready(number, "a")
        least, most = self.bounds
        story.deploy("m", simulated(least, most, concurrency=self.concurrency))
        story.settle()
        if self.told:
            story.schedule(scaling={"tokens_per_s": self.told})
            story.settle()
        seen: dict[int, int] = {}
        for second in range(SECONDS):
            for view in story.wanted():
                at = seen.setdefault(view.number, second + self.latencies[view.number % len(self.latencies)])
                if view.state == "added" and second >= at:
                    story.ready(view.number, "a")
            self.owed += self.makes()
            if not any(begin <= second < begin + length for begin, length in self.gaps):
                self.say()
            if self.demand and not story.wanted():
                story.activate()
            story.look()
            story.log.now += 1
        return story.sizes()

    def say(self) -> None:
        ready = sum(view.state == "ready" for view in self.story.wanted())
        running = min(self.demand, ready * self.concurrency)
        beyond = self.demand - running
        for number in range(self.gateways):
            share = [(each + number) // self.gateways for each in (running, beyond, self.owed)]
            where = {"waiting": share[1]} if ready else {"loading": share[1]}
            self.story.signal(f"g{number}", running=share[0], tokens=share[2], **where)
        self.owed = 0

    def makes(self) -> int:
        """Tokens in this second: requests lie evenly over what is ready."""
        ready = sum(view.state == "ready" for view in self.story.wanted())
        running = min(self.demand, ready * self.concurrency)
        return sum(min(self.most, (running + number) // ready * self.each) for number in range(ready))


WORLDS = st.builds(
    World,
    demand=st.integers(0, 30),
    concurrency=st.integers(1, 6),
    bounds=st.tuples(st.integers(0, 2), st.sampled_from([0, 3, 8])),
    began_with=st.integers(1, 6),
    latencies=st.lists(st.integers(0, 25), min_size=1, max_size=4),
    gaps=st.lists(st.tuples(st.integers(0, SECONDS), st.integers(1, 50)), max_size=3),
    gateways=st.integers(1, 3),
)
BY_TOKENS = st.builds(
    World,
    demand=st.integers(0, 60),
    concurrency=st.integers(1, 80),
    bounds=st.tuples(st.integers(0, 2), st.sampled_from([0, 3, 8])),
    began_with=st.integers(1, 6),
    latencies=st.lists(st.integers(0, 25), min_size=1, max_size=4),
    gaps=st.lists(st.tuples(st.integers(0, SECONDS), st.integers(1, 50)), max_size=2),
    gateways=st.integers(1, 3),
    told=st.sampled_from([1.0, 20.0, 80.0, 100.0, 150.0]),
    most=st.sampled_from([20, 100]),
    each=st.integers(0, 12),
)
"""Replicas with more places than they have tokens for, and fewer; what is told of them is right, or isn't."""


@settings(max_examples=50, deadline=None)
@given(world=st.one_of(WORLDS, BY_TOKENS))
def test_a_size_never_turns_back_under_a_constant_demand(world: World) -> None:
    least, most = world.bounds
    changes = world.run()

    assert len({after > before for before, after in changes}) <= 1, f"it turned back: {changes}"
    for (_, after), (before, _) in pairwise(changes):
        assert after == before
    assert all(least <= after and (not most or after <= most) for _, after in changes)
