"""What is wrong in the mesh, in sentences."""

import pytest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.node import (
    Approved,
    Cordoned,
    CutOff,
    Draining,
    Joined,
    Rejected,
    Removed,
    Unhealthy,
    WentOffline,
)
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, ModelSpec
from weft_contracts.ids import NodeId, TokenId
from weft_contracts.subjects import MESH, node
from weft_fleet import Fleet
from weft_gateway.domain.mesh_health import NAMED, problems_of
from weft_gateway.domain.model_state import Failing, ModelStanding
from weft_testing import HandLog
from weft_testing.fleet_log import FleetLog

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")


@pytest.mark.parametrize(("count", "sentences"), [(NAMED, NAMED), (NAMED + 1, 1)])
def test_many_who_wait_for_approval_are_one_sentence(count: int, sentences: int) -> None:
    log, fleet = HandLog(), Fleet()
    log.listen(fleet.apply)
    where = Addresses(host="127.0.0.1", http_port=1)
    for number in range(count):
        joined = Joined(name=f"box-{number}", public_key="U", token=TokenId("t-a"), addresses=where)
        log.given(node(NodeId(f"n-{number}")), joined)
    said = problems_of(fleet, {})
    assert sentences == len(said)
    assert "box-0" in said[0]
    assert sentences > 1 or said[0].startswith(f"{count} nodes wait for approval")


def a_log() -> FleetLog:
    log = FleetLog()
    log.node("a", 1)
    return log


READY = ModelStanding("ready", None, 1, 1, serves=1)


def test_a_mesh_in_which_all_is_well_has_nothing_to_say() -> None:
    log = a_log()
    id = log.model("toy", SPEC)
    assert [] == problems_of(log.fleet, {id: READY})


def test_a_brake_is_said_first_while_it_is_set() -> None:
    # given
    log = a_log()
    log.add(node(NodeId("n-a")), Unhealthy(silent_for=5))
    # when
    log.add(MESH, BrakeSet(silent=3, healthy_before=7))
    # then
    brake = "the brake is set: 3 of 7 nodes fell silent at once, nothing is replaced"
    assert [brake, "node a is unhealthy"] == problems_of(log.fleet, {})
    # when it is lifted
    log.add(MESH, BrakeLifted(why="they came back"))
    assert ["node a is unhealthy"] == problems_of(log.fleet, {})


@pytest.mark.parametrize(
    ("facts", "sentences"),
    [
        ((), []),
        ((Unhealthy(silent_for=5),), ["node a is unhealthy"]),
        ((WentOffline(silent_for=9),), ["node a is offline"]),
        ((CutOff(why="it sent too much"),), ["node a is cut off: it sent too much"]),
        ((Cordoned(),), []),
        ((Draining(why="admin", deadline_s=1),), []),
        ((Removed(why="sold"),), []),
    ],
)
def test_a_node_is_named_where_it_is_silent_or_cut_off_and_not_for_what_an_admin_wanted(
    facts: tuple[Fact, ...], sentences: list[str]
) -> None:
    log = a_log()
    log.add(node(NodeId("n-a")), *facts)
    assert sentences == problems_of(log.fleet, {})


def test_a_node_waits_for_approval_until_it_is_approved_and_needs_not_be_heard_for_it() -> None:
    log = a_log()
    where = Addresses(host="127.0.0.1", http_port=1)
    log.add(node(NodeId("n-b")), Joined(name="b", public_key="U", token=TokenId("t"), addresses=where))
    assert ["node b waits for approval"] == problems_of(log.fleet, {})
    log.add(node(NodeId("n-b")), Approved(by="admin"))
    assert [] == problems_of(log.fleet, {})


@pytest.mark.parametrize(
    ("stands", "sentences"),
    [
        (ModelStanding("unservable", "no GGUF file", 0, 1), ["model toy is unservable: no GGUF file"]),
        (ModelStanding("unplaceable", "no room", 0, 1), ["model toy is unplaceable: no room"]),
        (ModelStanding("loading", "it starts again", 0, 1), []),
        (ModelStanding("placing", None, 0, 1), []),
        (ModelStanding("empty", None, 0, 0), []),
        (
            ModelStanding("ready", None, 1, 1, 1, Failing(2, "no such argument")),
            ["revision 2 of model toy can't be served: no such argument; revision 1 goes on"],
        ),
        (ModelStanding("unservable", "gone", 0, 1, 1, Failing(2, "no")), ["model toy is unservable: gone"]),
    ],
)
def test_a_model_is_named_where_it_or_its_newest_revision_is_given_up_or_has_no_place(
    stands: ModelStanding, sentences: list[str]
) -> None:
    log = a_log()
    id = log.model("toy", SPEC)
    assert sentences == problems_of(log.fleet, {id: stands})


def test_who_was_approved_or_turned_away_is_not_among_those_who_wait() -> None:
    log = FleetLog()
    where = Addresses(host="127.0.0.1", http_port=1)
    for number in range(NAMED + 2):
        joined = Joined(name=f"box-{number}", public_key="U", token=TokenId("t"), addresses=where)
        log.add(node(NodeId(f"n-{number}")), joined)
    log.add(node(NodeId("n-0")), Approved(by="admin"))
    log.add(node(NodeId("n-1")), Rejected(why="not ours"))
    assert [f"node box-{number} waits for approval" for number in range(2, NAMED + 2)] == problems_of(log.fleet, {})
