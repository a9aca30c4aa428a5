"""However nodes drain and resume: while another node is left to take its replicas, a model never serves with fewer
than its minimum."""

from hypothesis import given, settings
from hypothesis import strategies as st

from .story import Story, simulated

NODES = ("a", "b", "c", "d")
DEADLINE_S = 10_000.0
"""No drain comes to the end of its wait here."""
_WHICH = st.integers(0, 7)
_STEPS = st.lists(
    st.tuples(st.sampled_from(["drain", "resume", "load", "load", "time", "lose half"]), _WHICH), max_size=40
)


class World:
    """Four nodes and a model with its minimum ready; who places and who runs does so when told to."""

    def __init__(self, least: int) -> None:
        self.story = Story()
        self.story.node(*NODES)
        self.story.deploy("m", simulated(least, least + 2))
        self.story.settle()
        while (coming := self.coming()) is not None:
            self.story.ready(coming, NODES[coming % len(NODES)])
            self.story.settle()
        assert least == self.ready

    @property
    def open(self) -> list[str]:
        """Nodes that don't drain."""
        return [name for name in NODES if not self.story.state.fleet.nodes[self.story.id(name)].draining]

    @property
    def ready(self) -> int:
        """Replicas that serve, and that gateways may go on to ask."""
        return sum(view.state == "ready" for view in self.story.wanted())

    def coming(self) -> int | None:
        """The oldest replica that does not serve yet."""
        return next((view.number for view in self.story.wanted() if view.state != "ready"), None)

    def happen(self, what: str, which: int) -> None:
        node = NODES[which % len(NODES)]
        match what:
            case "drain" if len(self.open) > 1 or self.open != [node]:
                self.story.drain(node, deadline_s=DEADLINE_S)
            case "resume":
                self.story.resume(node)
            case "load" if (number := self.coming()) is not None:
                self.story.ready(number, self.open[which % len(self.open)])
            case "lose half" if (number := self.coming()) is not None:  # placed, and its node drains before it serves
                if len(self.open) > 1 and self.story.replica(number).placed is None:
                    home = self.open[0]
                    self.story.place(number, home)
                    self.story.drain(home, deadline_s=DEADLINE_S)
            case "time":
                self.story.pass_time(float(which))
            case _:
                pass


@given(st.integers(1, 3), _STEPS)
@settings(max_examples=200, deadline=None)
def test_no_drain_takes_a_model_below_its_minimum_while_others_may_take_its_replicas(
    least: int, steps: list[tuple[str, int]]
) -> None:
    world = World(least)
    for what, which in steps:
        world.happen(what, which)
        world.story.settle()
        assert world.ready >= least
    # and when all that was added serves, nothing is left where a node drains
    for _ in range(20):
        while (coming := world.coming()) is not None:
            world.story.ready(coming, world.open[0])
            world.story.settle()
        world.story.pass_time(1)
    homes = {view.members[0].node for view in world.story.wanted()}
    assert homes <= {world.story.id(name) for name in world.open}
    assert least <= world.ready <= least + 2
