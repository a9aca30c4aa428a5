"""Where a model's replicas are reached, and who may choose one or be told which it was."""

from dataclasses import replace

import pytest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.model import Deleted
from weft_contracts.facts.node import Assigned, Draining, Rejoined, Removed, Unassigned, Unhealthy
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Degraded, Loading, Ready
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, DeviceClaim, Member, ModelSpec, Receipt, Scope
from weft_contracts.ids import Incarnation, KeyId, ModelId, NodeId, ReplicaId, replica_id
from weft_contracts.subjects import Aggregate, model, node, replica, run
from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.keys import KeyView
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.endpoint import Endpoint, endpoint_of, ready_endpoints
from weft_gateway.domain.routing.endpoint_state import EndpointState, replica_headers, restricted_to
from weft_gateway.domain.routing.routing_options import RoutingOptions, check_replica, routing_options_of
from weft_testing.fleet_log import FleetLog

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated", concurrency=3)
ID, ONE, A = ModelId("m-toy"), ReplicaId("m-toy-1"), NodeId("n-a")
FIRST = Incarnation("i-1")
RECEIPT = Receipt(
    position=0, policy="", policy_digest="", seed=0, trigger="", decided_at=0.0, refusals={}, candidates=()
)


class Toy:
    """A model of two replicas on one node, the first of which is ready."""

    def __init__(self) -> None:
        self.log = FleetLog()
        self.fleet = self.log.fleet
        self.log.node("a", 1 << 30)
        self.log.model("toy", SPEC, replicas=2)
        self.place(1)
        self.ready(1)

    def place(self, number: int) -> None:
        id = replica_id(ID, number)
        members = (Member(node=A, rank=0, devices=(DeviceClaim(index=0, bytes=1),)),)
        of = {"model": ID, "revision": 1, "epoch": 1, "members": members}
        told = {**of, "replica": id, "model_name": "toy", "digest": "d-1", "spec": SPEC}
        self.log.add(node(A), Assigned.model_validate(told))
        self.log.add(replica(id), Placed.model_validate({**of, "receipt": RECEIPT}))

    def ready(self, number: int) -> None:
        fact = Ready(epoch=1, incarnation=FIRST, port=9000 + number, engine="simulated", engine_version="1")
        self.log.add(run(A, replica_id(ID, number)), fact)

    def endpoints(self) -> list[Endpoint]:
        return list(ready_endpoints(self.fleet, ID))


@pytest.fixture
def toy() -> Toy:
    return Toy()


# endpoints


def test_a_ready_replica_is_reached_at_its_nodes_address_and_its_runs_port(toy: Toy) -> None:
    ready = toy.log.commits[-1]
    toy.log.add(node(A), Rejoined(addresses=Addresses(host="10.0.0.7", http_port=1)))
    assert [
        Endpoint(ONE, ID, 1, "d-1", A, "a", "10.0.0.7", 9001, FIRST, ready.event_id, concurrency=3, preferred=True)
    ] == toy.endpoints()


def test_all_of_a_models_ready_replicas_are_endpoints_oldest_first(toy: Toy) -> None:
    toy.place(2)
    assert [9001] == [each.port for each in toy.endpoints()]
    toy.ready(2)
    assert [9001, 9002] == [each.port for each in toy.endpoints()]
    assert [] == list(ready_endpoints(toy.fleet, ModelId("m-unknown")))
    toy.log.add(model(ID), Deleted())
    assert [] == toy.endpoints()


@pytest.mark.parametrize(
    ("fact", "preferred"), [(Unhealthy(silent_for=5), False), (Draining(why="admin", deadline_s=9), False)]
)
def test_a_node_that_may_be_going_is_not_preferred(toy: Toy, fact: Fact, preferred: bool) -> None:
    toy.log.add(node(A), fact)
    assert [preferred] == [each.preferred for each in toy.endpoints()]


@pytest.mark.parametrize(
    ("where", "fact"),
    [
        (node(A), Unassigned(replica=ONE, deadline_s=9, why="not wanted")),
        (node(A), Removed(why="sold")),
        (run(A, ONE), Degraded(epoch=1, incarnation=FIRST, why="stands still")),
        (run(A, ONE), Loading(epoch=1, incarnation=FIRST)),
    ],
)
def test_what_retires_is_lost_or_is_not_ready_is_no_endpoint(toy: Toy, where: Aggregate, fact: Fact) -> None:
    toy.log.add(where, fact)
    assert [] == toy.endpoints()
    assert endpoint_of(toy.fleet, toy.fleet.replicas[ONE]) is None


def test_a_choice_of_one_replica_leaves_the_others_out(toy: Toy) -> None:
    toy.place(2)
    toy.ready(2)
    states = [EndpointState(each) for each in toy.endpoints()]
    assert states == restricted_to(states, None)
    assert states[1:] == restricted_to(states, "m-toy-2")
    assert [] == restricted_to(states, "m-toy-3")


def test_who_answered_is_named_by_replica_node_and_run(toy: Toy) -> None:
    (endpoint,) = toy.endpoints()
    expected = {"x-weft-replica": ONE, "x-weft-node": "a", "x-weft-run-event": endpoint.event_id}
    assert expected == replica_headers(EndpointState(endpoint), "")
    assert {**expected, "x-weft-alias": "chat"} == replica_headers(EndpointState(endpoint), "chat")


def test_a_load_is_the_larger_of_what_is_counted_here_and_what_the_engine_says(toy: Toy) -> None:
    (endpoint,) = toy.endpoints()
    assert [3, 5] == [EndpointState(endpoint, in_flight=3, engine_load=load).load for load in (2, 5)]


# what a request asks of routing


def key(*scopes: Scope) -> Caller:
    return Caller(KeyView(KeyId("k-1"), "h", "weft-1", scopes, None, None, 0.0, "anonymous", 1))


@pytest.mark.parametrize(
    ("explain", "chosen", "everybody", "expected"),
    [
        (None, None, False, RoutingOptions(False, None)),
        (None, None, True, RoutingOptions(True, None)),
        ("1", None, False, RoutingOptions(True, None)),
        ("0", None, False, RoutingOptions(False, None)),
        ("0", None, True, RoutingOptions(True, None)),
        (None, ONE, False, RoutingOptions(True, ONE)),
        ("0", ONE, False, RoutingOptions(True, ONE)),
    ],
)
@pytest.mark.parametrize("caller", [NOBODY, key("read"), key("inference", "read"), key("admin")])
def test_who_may_read_the_meshs_status_is_told_and_may_choose(
    caller: Caller, explain: str | None, chosen: str | None, everybody: bool, expected: RoutingOptions
) -> None:
    assert expected == routing_options_of(explain, chosen, caller, everybody=everybody)


@pytest.mark.parametrize(
    ("explain", "chosen", "header"), [("1", None, "x-weft-explain"), (None, ONE, "x-weft-replica")]
)
def test_a_key_that_may_not_read_is_told_nothing_unless_everybody_is(
    explain: str | None, chosen: str | None, header: str
) -> None:
    caller = key("inference")
    with pytest.raises(Refused) as caught:
        routing_options_of(explain, chosen, caller, everybody=False)
    assert (403, header, "scope_missing") == (caught.value.status, caught.value.param, caught.value.code)
    assert RoutingOptions(True, chosen) == routing_options_of(explain, chosen, caller, everybody=True)
    # what asks for nothing needs nothing
    assert RoutingOptions() == routing_options_of("0", None, caller, everybody=False)


def test_to_explain_is_1_or_0() -> None:
    with pytest.raises(Refused) as caught:
        routing_options_of("y" * 50, None, NOBODY, everybody=True)
    assert (400, f"`x-weft-explain` is {'y' * 40!r}; it must be 1 or 0.") == (
        caught.value.status,
        caught.value.sentence,
    )


def refusal(toy: Toy, id: str) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        check_replica(toy.fleet, toy.fleet.models[ID], id)
    assert "x-weft-replica" == caught.value.param
    return caught.value.status, caught.value.sentence


def test_a_chosen_replica_must_be_one_of_the_models_that_takes_requests(toy: Toy) -> None:
    check_replica(toy.fleet, toy.fleet.models[ID], ONE)
    assert (404, "Replica 'm-x' does not exist; model 'toy' has: m-toy-1, m-toy-2.") == refusal(toy, "m-x")
    assert (503, "Replica m-toy-2 takes no requests: it is added.") == refusal(toy, "m-toy-2")
    toy.log.model("other", SPEC, replicas=1)
    assert (400, "Replica m-other-1 is none of model 'toy'.") == refusal(toy, "m-other-1")


def test_a_chosen_replica_takes_nothing_while_its_node_drains_or_it_retires(toy: Toy) -> None:
    toy.log.add(node(A), Draining(why="admin", deadline_s=9))
    assert (503, "Replica m-toy-1 takes no new requests: its node a drains.") == refusal(toy, ONE)
    toy.log.add(node(A), Unassigned(replica=ONE, deadline_s=9, why="drain"))
    assert (503, "Replica m-toy-1 takes no requests: it is retiring.") == refusal(toy, ONE)


def test_a_model_without_replicas_says_that_it_has_none() -> None:
    log = FleetLog()
    log.model("toy", SPEC)
    with pytest.raises(Refused, match="model 'toy' has: none"):
        check_replica(log.fleet, log.fleet.models[ID], "m-toy-1")


# callers


def test_a_key_may_use_its_own_models_alone() -> None:
    view = key("inference").key
    assert view is not None
    limited = Caller(replace(view, models=("toy", "doll")))
    limited.check_model("doll")
    Caller(view).check_model("any")
    NOBODY.check_model("any")
    with pytest.raises(Refused) as caught:
        limited.check_model("other")
    assert (403, "model", "model_not_allowed") == (caught.value.status, caught.value.param, caught.value.code)
    assert "it may use: toy, doll" in caught.value.sentence
    with pytest.raises(Refused) as caught:
        limited.check_model("x" * 500)
    assert repr("x" * 128) in caught.value.sentence


def test_a_caller_is_its_key_or_anonymous() -> None:
    assert ("k-1", "anonymous") == (key("read").actor, NOBODY.actor)
    assert (None, None) == (key("read").models, NOBODY.models)
