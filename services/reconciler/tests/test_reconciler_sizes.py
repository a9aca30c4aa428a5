"""How many replicas a model has by what there is to do: more when all are busy, fewer when there is little."""

from weft_contracts import subjects
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import BrakeSet
from weft_contracts.facts.model import Sized
from weft_contracts.facts.values import Backend, Device, Hardware
from weft_contracts.ids import ModelId
from weft_contracts.signals import GatewayDemand, ModelDemand
from weft_contracts.subjects import MESH

from .elastic import MINUTES, all_ready, an_elastic_model
from .story import Story, simulated


def test_all_busy_and_below_the_maximum_one_more_comes_and_says_why() -> None:
    story = an_elastic_model(1, 4)

    story.serve(5, running=2)

    assert [(1, 2)] == story.sizes()
    assert [1, 2] == story.numbers()
    why = "all were busy for 3 s: 2 requests ran at 1 with 2 places each"
    scaled = story.scaled()[-1]
    assert f"2 wanted, 1 there: {why}" == scaled.why
    assert 2 == scaled.wanted
    assert 0 < scaled.position < story.log.head


def test_at_the_maximum_there_is_none_more_however_many_wait() -> None:
    story = an_elastic_model(2, 2)
    story.serve(60, running=4, waiting=90)
    assert [] == story.sizes()

    bounded = an_elastic_model(1, 2)
    bounded.serve(5, running=2, waiting=90)
    all_ready(bounded)
    bounded.serve(60, running=4, waiting=90)
    assert [(1, 2)] == bounded.sizes()


def test_neither_minimum_nor_maximum_is_one_replica_whatever_there_is_to_do() -> None:
    story = Story()
    story.node("a", "b")
    story.deploy("m", simulated())
    story.settle()
    story.ready(1, "a")

    story.serve(30, running=8, waiting=40)
    story.serve(20 * MINUTES)

    assert [] == story.sizes()
    assert [1] == story.numbers()


def test_a_maximum_of_0_is_no_upper_bound() -> None:
    story = an_elastic_model(1, 0)
    for _ in range(5):
        story.serve(12, running=2, waiting=90)
        all_ready(story) if len(story.wanted()) <= 6 else None
    assert (4, 8) == story.sizes()[2]


def test_a_moment_of_business_is_not_enough() -> None:
    story = an_elastic_model(1, 4)
    for _ in range(20):
        story.serve(2, running=2)
        story.serve(1, running=1)
    assert [] == story.sizes()


def test_none_more_comes_while_one_is_on_its_way() -> None:
    story = an_elastic_model(1, 4)
    story.serve(2 * MINUTES, running=2, waiting=1)
    assert [(1, 2)] == story.sizes()

    all_ready(story)
    story.serve(20, running=4, waiting=1)
    assert [(1, 2), (2, 3)] == story.sizes()


def test_what_waited_before_a_replica_was_ready_asks_for_no_further_one() -> None:
    story = an_elastic_model(1, 4)
    story.serve(MINUTES, running=2, waiting=1)
    assert [(1, 2)] == story.sizes()

    all_ready(story)
    story.serve(2, running=2, waiting=1)  # what a gateway told before it knew
    story.serve(MINUTES, running=3)

    assert [(1, 2)] == story.sizes()


def test_a_look_between_two_requests_does_not_make_a_replica_smaller_than_it_was_seen_to_be() -> None:
    story = an_elastic_model(1, 4)
    for _ in range(3):
        story.serve(1, running=2, waiting=1)
        story.serve(1, running=1, waiting=1)

    (fact,) = [fact for fact in story.log.facts() if isinstance(fact, Sized)]
    assert (2, 2) == (fact.replicas, fact.places)
    assert 2 == fact.receipt.seen.most_running


def test_as_many_come_as_have_room_for_all_that_wait_but_no_more_than_twice_as_many() -> None:
    story = an_elastic_model(2, 0)
    story.serve(5, running=4, waiting=3)
    assert [(2, 4)] == story.sizes()

    flood = an_elastic_model(2, 0)
    flood.serve(5, running=4, waiting=400)
    assert [(2, 4)] == flood.sizes()


def test_what_waits_at_several_gateways_is_added() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=1, gateways=("g", "h"))
    assert [(1, 2)] == story.sizes()


def test_a_model_that_is_given_up_is_not_sized() -> None:
    story = Story()
    story.node("a")
    story.deploy("m", simulated(1, 4))
    story.settle()
    story.fail(1, "a", "no such argument", permanent=True)
    story.settle()

    story.serve(60, loading=9)

    assert story.unservable()
    assert [] == story.sizes()


def test_idle_longer_than_the_delay_and_above_the_minimum_one_goes_at_a_time() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=3)
    all_ready(story)
    story.serve(15, running=4, waiting=3)
    all_ready(story)
    assert [(1, 2), (2, 4)] == story.sizes()

    story.serve(4.5 * MINUTES)
    assert 2 == len(story.sizes())
    story.serve(45)
    assert (4, 3) == story.sizes()[-1]
    assert "more than the 3 wanted: nothing ran or waited for 300 s" == story.scaled()[-1].why

    story.serve(10 * MINUTES)
    assert [(4, 3), (3, 2), (2, 1)] == story.sizes()[2:]
    assert 1 == len(story.wanted())


def test_one_fewer_does_where_its_places_leave_room_to_spare_for_five_minutes() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=3)
    all_ready(story)

    story.serve(20 * MINUTES, running=2)
    assert [(1, 2)] == story.sizes(), "two requests fill the two places of one replica"

    story.serve(6 * MINUTES, running=1)
    assert [(1, 2), (2, 1)] == story.sizes()


def test_the_lowest_keep_score_goes_first() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=1)
    device = Device(index=0, vendor="nvidia", name="gpu", memory=1 << 30)
    hardware = Hardware(cpus=2, memory=1 << 30, devices=(device,))
    backend = Backend(engine="simulated", version="1", vendors=("nvidia",))
    reported = Reported(hardware=hardware, backends=(backend,), builtins=(), agent_version="1")
    story.log.given(subjects.machine(story.id("b")), reported)
    story.ready(2, "b")
    story.settle()

    story.serve(7 * MINUTES)

    assert [2] == story.numbers(), "the one on a processor went, though it was older"


def test_one_that_starts_goes_before_those_that_serve() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=1)
    assert [1, 2] == story.numbers()

    story.serve(7 * MINUTES)

    assert [1] == story.numbers()


def test_unknown_is_never_idle() -> None:
    story = an_elastic_model(1, 4, ready=1)
    story.serve(5, running=2, waiting=1)
    all_ready(story)

    for _ in range(20):
        story.serve(50)
        story.log.now += 8  # nothing is heard for longer than what was said counts
        story.look()

    assert [(1, 2)] == story.sizes()


def test_nothing_is_scaled_down_where_there_is_no_gateway() -> None:
    story = an_elastic_model(0, 4, ready=0)
    story.activate()
    story.settle()
    story.ready(1, "a")
    for _ in range(20 * MINUTES):
        story.look()
        story.log.now += 1
    assert [(0, 1)] == story.sizes()


def test_a_silent_gateway_keeps_replicas_until_it_is_gone_and_one_that_leaves_at_once_does_not() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=1, gateways=("g", "h"))
    all_ready(story)
    story.serve(60 + 4.5 * MINUTES)
    assert [(1, 2)] == story.sizes(), "h was silent for a minute, and unknown"
    story.serve(1 * MINUTES)
    assert [(1, 2), (2, 1)] == story.sizes()

    left = an_elastic_model(1, 4)
    left.serve(5, running=2, waiting=1, gateways=("g", "h"))
    all_ready(left)
    left.watch.board.heard("h", GatewayDemand(leaving=True), left.log.now)
    left.serve(5.5 * MINUTES)
    assert [(1, 2), (2, 1)] == left.sizes()


def test_a_signal_that_has_no_room_for_a_model_says_nothing_of_it() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=1)
    all_ready(story)
    other = ModelDemand(model=ModelId("m-other"), running=1)
    for _ in range(20 * MINUTES):
        story.watch.board.heard("g", GatewayDemand(models=(other,), left_out=3), story.log.now)
        story.look()
        story.log.now += 1
    assert [(1, 2)] == story.sizes()


def test_what_began_and_ended_between_two_signals_counts_as_use() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=1)
    all_ready(story)
    for second in range(20 * MINUTES):
        used = ModelDemand(model=story.model().id, idle_s=0.4 + second % 100)
        story.watch.board.heard("g", GatewayDemand(models=(used,)), story.log.now)
        story.look()
        story.log.now += 1
    assert [(1, 2)] == [size for size in story.sizes() if size != (2, 1)]
    assert "leave room" in [fact.why for fact in story.log.facts() if isinstance(fact, Sized)][-1]


def test_nothing_is_scaled_down_while_the_brake_holds() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=1)
    all_ready(story)
    story.log.given(MESH, BrakeSet(silent=2, healthy_before=6))
    story.serve(20 * MINUTES)
    assert [(1, 2)] == story.sizes()
