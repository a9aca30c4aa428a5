"""Whatever happens, in whatever order: decisions come to an end, their guards hold, and a refold agrees."""

from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.aliases import AliasTarget
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.replica import Evicted
from weft_contracts.ids import ModelId
from weft_reconciler.domain.decide import decide
from weft_reconciler.domain.state import State

from .story import WEIGHTS, Story, builtin, simulated

NODES = ("a", "b", "c")
ALIASES = ("m", "n")
SPECS = (
    simulated(1),
    simulated(2, 3),
    simulated(0, 2),
    simulated(2, 2, context_tokens=64),
    simulated(1, 1, selector={"zone": "x"}),
    simulated(3, 2),
    builtin(),
    builtin("huge"),
)
steps = st.tuples(
    st.sampled_from(
        (
            "deploy", "delete", "retry", "lose", "find", "drain", "resume", "remove", "join",
            "ready", "fail", "fail for good", "shut down", "evict", "inspect", "miss",
            "brake", "lift", "time", "night", "settle", "alias", "no alias",
        )
    ),
    st.integers(0, 11),
)  # fmt: skip


def happen(story: Story, what: str, which: int) -> None:
    """One thing happens, if it can."""
    node = NODES[which % len(NODES)]
    model = story.state.fleet.model_named("m")
    wanted = story.wanted() if model is not None else []
    replica = wanted[which % len(wanted)] if wanted else None
    match what:
        case "deploy":
            story.deploy("m", SPECS[which % len(SPECS)])
        case "delete" | "retry":
            id = model.id if model is not None else "m-none"
            _ = story.delete(id) if what == "delete" else story.retry(id)
        case "alias":  # of the model, or by its name
            id = model.id if model is not None else ModelId("m-none")
            story.alias(ALIASES[which % len(ALIASES)], "order", (AliasTarget(model=id),))
        case "no alias":
            story.remove_alias(ALIASES[which % len(ALIASES)])
        case "lose":
            story.lose(node)
        case "find":
            story.find(node)
        case "drain":
            story.drain(node, deadline_s=20.0)
        case "resume":
            story.resume(node)
        case "remove" if which == 0:
            story.remove("c")
        case "join":
            story.node(f"z{story.log.head}", labels={"zone": "x"})
        case "brake":
            story.log.given(subjects.MESH, BrakeSet(silent=2, healthy_before=3))
        case "lift":
            story.log.given(subjects.MESH, BrakeLifted(why="test"))
        case "inspect" | "miss" if story.questions(node):
            story.inspect(node, WEIGHTS if what == "inspect" else "not there")
        case "time":
            story.pass_time(15)
        case "night":
            story.sleep(3000)
        case "settle":
            story.settle()
        case "ready" | "fail" | "fail for good" | "shut down" | "evict" if replica is not None:
            place = next(
                (name for name in NODES if replica.members and replica.members[0].node == story.id(name)), node
            )
            match what:
                case "ready":
                    story.ready(replica.number, place)
                case "shut down" if replica.members:
                    story.shut_down(replica.number, place)
                case "evict":
                    story.log.given(subjects.replica(replica.id), Evicted(why="room"))
                case "fail" | "fail for good":
                    story.fail(replica.number, place, permanent=what == "fail for good")
                case _:
                    pass
        case _:
            pass


@given(st.lists(steps, max_size=40))
@settings(max_examples=150, deadline=None)
def test_any_history_leads_to_a_fixed_point(history: list[tuple[str, int]]) -> None:
    story = Story()
    story.node(*NODES)
    story.deploy("m", simulated(2))

    for what, which in history:
        happen(story, what, which)
    story.settle()

    time = story.clock.tick(story.log.now)
    again = State()
    again.fold(story.log.commits)
    assert [] == decide(story.state, time)
    assert [] == decide(again, time)


@given(st.lists(steps, max_size=40))
@settings(max_examples=100, deadline=None)
def test_a_state_folded_anew_from_the_same_log_is_the_same(history: list[tuple[str, int]]) -> None:
    story = Story()
    story.node(*NODES)
    for what, which in history:
        happen(story, what, which)
        story.settle()

    again = State()
    again.fold(story.log.commits)

    assert story.state == again


@given(st.lists(steps, max_size=40))
@settings(max_examples=150, deadline=None)
def test_a_mesh_that_recovers_serves_its_minimum_and_keeps_its_maximum(history: list[tuple[str, int]]) -> None:
    story = Story()
    story.node(*NODES, "sound", labels={"zone": "x"})
    for what, which in history:
        happen(story, what, which)
        story.settle()

    story.log.given(subjects.MESH, BrakeLifted(why="test"))
    for node in story.state.fleet.nodes.values():
        if not node.removed:
            story.find(node.name)
            story.resume(node.name)
    story.remove_alias("m")
    story.settle()
    story.deploy("m", simulated(2, 3, concurrency=3))
    story.settle()
    for _ in range(20):
        idle = [view for view in story.wanted() if view.state != "ready"]
        for view in idle:
            story.ready(view.number, "sound")
        story.settle()

    assert 2 <= len(story.wanted()) <= 3
    assert {"ready"} == {view.state for view in story.wanted()}
    assert {story.model().digest} == {view.digest for view in story.wanted()}
