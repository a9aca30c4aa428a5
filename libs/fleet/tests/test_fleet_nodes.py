"""What the fleet says of a node."""

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.facts.fact import Voided
from weft_contracts.facts.machine import FileFound, FileMissing, PressureChanged
from weft_contracts.facts.model import Deleted, SpecAccepted
from weft_contracts.facts.node import (
    Approved,
    Cordoned,
    CutOff,
    Drained,
    Draining,
    Healthy,
    Joined,
    Labelled,
    Rejected,
    Rejoined,
    Resumed,
    Uncordoned,
    Unhealthy,
    WentOffline,
)
from weft_contracts.facts.values import Addresses, ModelSpec, SimulatedSource, Weights
from weft_contracts.ids import InspectionId, ModelId, NodeId, TokenId
from weft_contracts.subjects import machine, model, node
from weft_fleet.auto_labels import auto_labels
from weft_testing.fleet_log import FleetLog

A = NodeId("n-a")
HERE = Addresses(host="127.0.0.1", http_port=1)
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")


def joined() -> Joined:
    return Joined(name="a", public_key="UA", token=TokenId("t-1"), addresses=HERE)


def test_a_pending_node_never_turns_healthy_without_approval():
    log = FleetLog()
    log.add(node(A), joined())
    log.add(node(A), Healthy())
    assert "pending" == log.fleet.nodes[A].state
    log.add(node(A), Approved(by="admin"))
    assert "joined" == log.fleet.nodes[A].presence
    log.add(node(A), Healthy())
    assert "healthy" == log.fleet.nodes[A].state
    assert log.fleet.nodes[A].takes_replicas


def test_an_admins_label_outlives_the_workers_own():
    log = FleetLog()
    id = log.node("a", 1, labels={"zone": "1", "disk": "slow"})
    log.add(node(id), Labelled(labels={"zone": "2", "disk": None}))
    log.add(node(id), Rejoined(addresses=HERE, labels={"zone": "3", "disk": "slow", "rack": "r"}))
    own = {key: value for key, value in log.fleet.nodes[id].labels.items() if key in ("zone", "disk", "rack")}
    assert {"zone": "2", "rack": "r"} == own


KEYS = st.sampled_from(["zone", "disk", "rack"])
VALUES = st.sampled_from(["1", "2"])


@given(
    st.lists(
        st.one_of(
            st.builds(Rejoined, addresses=st.just(HERE), labels=st.dictionaries(KEYS, VALUES)),
            st.builds(
                Labelled,
                labels=st.dictionaries(KEYS, st.one_of(VALUES, st.none())),
                forgotten=st.lists(KEYS, max_size=2).map(tuple),
            ),
        ),
        max_size=8,
    )
)
def test_a_label_is_what_an_admin_said_last_and_else_what_the_node_said_last(facts: list[Rejoined | Labelled]):
    # given
    log = FleetLog()
    id = log.node("a", 1, labels={"zone": "0"})
    own: dict[str, str] = {"zone": "0"}
    said: dict[str, str | None] = {}
    # when
    for fact in facts:
        log.add(node(id), fact)
        if isinstance(fact, Rejoined):
            own = fact.labels
        else:
            said = {key: value for key, value in (said | fact.labels).items() if key not in fact.forgotten}
    # then
    view = log.fleet.nodes[id]
    automatic = auto_labels(view.name, view.hardware, view.backends)
    expected = {key: value for key, value in (automatic | own | said).items() if value is not None}
    assert expected == view.labels


def test_a_rejected_node_stays_so_until_an_admin_approves_it():
    log = FleetLog()
    log.add(node(A), joined())
    log.add(node(A), Rejected(why="not ours"))
    for fact in (Healthy(), Rejoined(addresses=HERE), Uncordoned()):
        log.add(node(A), fact)
        assert ("rejected", "not ours") == (log.fleet.nodes[A].state, log.fleet.nodes[A].rejected)
        assert not log.fleet.nodes[A].takes_replicas
    log.add(node(A), Approved(by="admin"))
    assert ("pending", None) == (log.fleet.nodes[A].state, log.fleet.nodes[A].rejected)


def test_a_node_takes_replicas_only_while_healthy_and_neither_draining_nor_cordoned():
    log = FleetLog()
    id = log.node("a", 1)
    for closing, opening, state in (
        (Unhealthy(silent_for=5), Healthy(), "unhealthy"),
        (Draining(why="admin", deadline_s=1), Resumed(), "draining"),
        (Cordoned(), Uncordoned(), "cordoned"),
    ):
        log.add(node(id), closing)
        assert state == log.fleet.nodes[id].state
        assert not log.fleet.nodes[id].takes_replicas
        log.add(node(id), opening)
        assert log.fleet.nodes[id].takes_replicas
    log.add(node(id), Draining(why="admin", deadline_s=1))
    log.add(node(id), Drained())
    assert "drained" == log.fleet.nodes[id].state


def test_a_node_that_is_cut_off_is_gone_until_it_is_resumed_and_heard():
    log = FleetLog()
    log.add(node(A), joined(), Approved(by="admin"))
    log.add(node(A), Healthy())
    log.add(node(A), CutOff(why="it sent a million messages"), WentOffline(silent_for=0.0))
    view = log.fleet.nodes[A]
    assert ("cut_off", "it sent a million messages", True) == (view.state, view.cut_off, view.gone)
    log.add(node(A), Resumed())
    assert ("offline", None) == (log.fleet.nodes[A].state, log.fleet.nodes[A].cut_off)
    log.add(node(A), Healthy())
    assert ("healthy", True) == (log.fleet.nodes[A].state, log.fleet.nodes[A].takes_replicas)


def test_the_last_answer_about_a_file_counts():
    log = FleetLog()
    id = log.node("a", 1)
    missing = FileMissing(inspection=InspectionId("i-1"), source="path:/m", reason="no such file")
    found = FileFound(inspection=InspectionId("i-2"), source="path:/m", size=3, weights=Weights(format="gguf"))
    log.add(machine(id), missing)
    log.add(machine(id), found)
    assert {"path:/m": found} == log.fleet.nodes[id].files


def test_what_others_use_of_a_device_is_known_until_it_changes():
    log = FleetLog()
    id = log.node("a", 100, 100)
    log.add(machine(id), PressureChanged(device=1, bytes=7))
    log.add(machine(id), PressureChanged(device=1, bytes=9))
    assert {1: 9} == log.fleet.nodes[id].pressure


def test_a_name_belongs_to_the_model_that_bears_it_now():
    log = FleetLog()
    log.model("toy", SPEC)
    first = log.fleet.model_named("toy")
    assert first is not None
    assert ModelId("m-toy") == first.id
    log.add(model(ModelId("m-toy")), Deleted())
    assert log.fleet.model_named("toy") is None
    other = SpecAccepted(name="toy", revision=1, digest="d", spec=SPEC)
    log.add(model(ModelId("m-other")), other)
    second = log.fleet.model_named("toy")
    assert second is not None
    assert ModelId("m-other") == second.id


def test_replica_numbers_count_up_and_never_return():
    log = FleetLog()
    id = log.model("toy", SPEC, replicas=2)
    replicas = list(log.fleet.models[id].replicas)
    log.retire(*replicas)
    log.scale(id, 1)
    assert ["m-toy-3"] == list(log.fleet.models[id].replicas)
    assert 4 == log.fleet.models[id].next_number


def test_the_fleet_passes_over_what_is_void():
    log = FleetLog()
    id = log.node("a", 1)
    before = log.fleet.nodes[id]
    recorded = log.add(node(id), Voided(sequence=1, why="wrong"))
    assert recorded.sequence == log.fleet.nodes[id].sequence
    assert before.state == log.fleet.nodes[id].state
