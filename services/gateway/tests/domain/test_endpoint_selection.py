"""Selection of an endpoint: which replica takes a request."""

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.ids import EventId, Incarnation, ModelId, NodeId, ReplicaId
from weft_gateway.domain.routing.endpoint import Endpoint
from weft_gateway.domain.routing.endpoint_state import EndpointState
from weft_gateway.domain.routing.filters import has_room, not_among, reachable, same_digest
from weft_gateway.domain.routing.selection import select


def an_endpoint(number: int, in_flight: int = 0, used: float = 0.0, **endpoint: object) -> EndpointState:
    fields: dict[str, object] = {
        "replica": ReplicaId(f"m-1-{number}"),
        "model": ModelId("m-1"),
        "revision": 1,
        "digest": "d",
        "node": NodeId("n-1"),
        "node_name": "node-1",
        "host": "127.0.0.1",
        "port": 1,
        "incarnation": Incarnation("i"),
        "event_id": EventId(f"e{number}"),
        "concurrency": 8,
        "preferred": True,
    }
    return EndpointState(Endpoint(**(fields | endpoint)), in_flight=in_flight, last_used=used)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def picked(states: list[EndpointState]) -> str | None:
    found = select(states, [reachable, has_room]).chosen
    return found.endpoint.replica if found else None


def test_the_replica_with_the_fewest_requests_is_chosen() -> None:
    assert "m-1-2" == picked([an_endpoint(1, 3), an_endpoint(2, 0), an_endpoint(3, 1)])


def test_of_idle_replicas_the_least_recently_used_is_chosen() -> None:
    assert "m-1-2" == picked([an_endpoint(1, used=12), an_endpoint(2, used=10), an_endpoint(3, used=11)])


def test_without_replicas_there_is_no_choice() -> None:
    assert picked([]) is None


def test_what_the_engine_says_of_other_gateways_counts() -> None:
    busy = an_endpoint(1, used=0)
    busy.engine_load = 5
    assert "m-1-2" == picked([busy, an_endpoint(2, 1, used=9)])


def test_a_sound_node_is_preferred_to_an_idle_one_that_may_be_going() -> None:
    assert "m-1-2" == picked([an_endpoint(1, 0, preferred=False), an_endpoint(2, 7)])


def test_each_refusal_has_its_reason() -> None:
    ejected = an_endpoint(1)
    ejected.ejected = "session lost: silent"
    states = [ejected, an_endpoint(2, 8), an_endpoint(3), an_endpoint(4, digest="x")]
    selection = select(states, [reachable, has_room, not_among({"m-1-3"}), same_digest("d")])
    assert selection.chosen is None
    assert {
        "m-1-1": "session lost: silent",
        "m-1-2": "runs 8 of 8 requests",
        "m-1-3": "was tried already",
        "m-1-4": "runs another revision (x)",
    } == selection.refusals


def test_an_address_of_version_six_stands_in_brackets() -> None:
    assert "[::1]:1" == an_endpoint(1, host="::1").endpoint.address


@given(st.lists(st.tuples(st.integers(0, 10), st.floats(0, 1e6)), max_size=12))
def test_no_replica_with_room_is_less_loaded_than_the_chosen_one(loads: list[tuple[int, float]]) -> None:
    states = [an_endpoint(number, load, used) for number, (load, used) in enumerate(loads)]
    chosen = select(states, [reachable, has_room]).chosen
    free = [other for other in states if other.in_flight < 8]
    assert (chosen is None) == (not free)
    if chosen is not None:
        assert min((o.load, o.last_used) for o in free) == (chosen.load, chosen.last_used)
