"""A model's size by what there is to do, as the log tells it."""

from weft_contracts.facts.model import Sized, Unloaded
from weft_contracts.facts.sizing import DemandSeen, ScalingPolicy, SizingReceipt
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.subjects import model
from weft_fleet import ModelView, Size, is_elastic, within_bounds
from weft_testing.fleet_log import FleetLog

ID = ModelId("m-toy")
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")


def bounds(least: int, most: int) -> ModelSpec:
    return SPEC.model_copy(update={"min_replicas": least, "max_replicas": most})


def sized(replicas: int, was: int) -> Sized:
    receipt = SizingReceipt(position=1, decided_at=5.0, seed=0, policy=ScalingPolicy(), seen=DemandSeen())
    return Sized(replicas=replicas, was=was, places=8, why="so", receipt=receipt)


def a_model(least: int, most: int) -> FleetLog:
    log = FleetLog()
    log.model("toy", bounds(least, most))
    return log


def view(log: FleetLog) -> ModelView:
    return log.fleet.models[ID]


def test_the_last_size_stands_and_a_model_of_which_none_is_left_sleeps() -> None:
    log = a_model(0, 4)
    assert (None, False) == (view(log).size, view(log).asleep)
    log.add(model(ID), sized(2, 0))
    assert Size(2, 0, 8, "so", 5.0) == view(log).size
    log.add(model(ID), sized(0, 2))
    assert view(log).asleep


def test_a_spec_that_leaves_a_choice_keeps_the_size_and_one_that_leaves_none_ends_it() -> None:
    log = a_model(0, 4)
    log.add(model(ID), sized(0, 1))
    log.model("toy", bounds(1, 2))
    size = view(log).size
    assert size is not None
    assert (0, False) == (size.replicas, view(log).asleep)
    log.model("toy", bounds(1, 1))
    assert view(log).size is None


def test_what_an_admin_takes_off_a_node_is_not_wanted_any_more() -> None:
    log = a_model(0, 4)
    log.add(model(ID), sized(3, 1))
    log.add(
        model(ID), Unloaded(node=NodeId("n-a"), replicas=(ReplicaId("m-toy-1"), ReplicaId("m-toy-2")), deadline_s=0)
    )
    size = view(log).size
    assert size is not None
    assert (1, 3) == (size.replicas, size.was)


def test_bounds_hold_whatever_the_size_says() -> None:
    assert [2, 2, 4, 4] == [within_bounds(bounds(2, 4), size) for size in (0, 2, 4, 9)]
    assert 90 == within_bounds(bounds(0, 0), 90)
    assert [False, True, True, True] == [is_elastic(bounds(*each)) for each in ((1, 1), (1, 2), (0, 1), (3, 0))]
