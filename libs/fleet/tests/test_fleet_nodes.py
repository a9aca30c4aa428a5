"""What the fleet says of a node."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.facts.fact import Fact, Voided
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.machine import FileFound, FileMissing, PressureChanged, Reported
from weft_contracts.facts.model import Deleted, SpecAccepted
from weft_contracts.facts.node import (
    Approved,
    Capped,
    Cordoned,
    CutOff,
    Drained,
    Draining,
    Healthy,
    Joined,
    Labelled,
    Rejected,
    Rejoined,
    Removed,
    Resumed,
    Uncordoned,
    Unhealthy,
    WentOffline,
)
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, Caps, Device, Hardware, ModelSpec, VramBudget, Weights
from weft_contracts.ids import InspectionId, ModelId, NodeId, ReplicaId, TokenId
from weft_contracts.subjects import inspection, machine, model, node
from weft_fleet.auto_labels import auto_labels
from weft_fleet.node_machine import FILES_KEPT
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


def test_what_one_engine_can_load_of_a_source_says_nothing_of_another():
    log = FleetLog()
    id = log.node("a", 1)
    for name, engine in (("i-1", "llama.cpp"), ("i-2", "vllm")):
        log.add(inspection(id, InspectionId(name)), Requested(source="builtin:tiny", engine=engine))
    gguf = Weights(format="gguf", weight_bytes=7)
    found = FileFound(inspection=InspectionId("i-1"), source="builtin:tiny", size=7, weights=gguf)
    missing = FileMissing(inspection=InspectionId("i-2"), source="builtin:tiny", reason="no safetensors")
    log.add(machine(id), found)
    log.add(machine(id), missing)

    view = log.fleet.nodes[id]
    assert {"builtin:tiny for llama.cpp": found, "builtin:tiny for vllm": missing} == view.files
    assert (found, missing) == (view.file("builtin:tiny", "llama.cpp"), view.file("builtin:tiny", "vllm"))
    assert view.file("builtin:tiny", "another") is None
    # and what was answered is no question any more
    assert {} == view.asked


def test_questions_that_a_node_never_answers_are_forgotten_where_there_are_too_many():
    log = FleetLog()
    id = log.node("a", 1)
    for number in range(FILES_KEPT + 1):
        log.add(inspection(id, InspectionId(f"i-{number}")), Requested(source="path:/m", engine="vllm"))
    assert FILES_KEPT == len(log.fleet.nodes[id].asked)
    assert InspectionId("i-0") not in log.fleet.nodes[id].asked


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


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ((), "healthy"),
        ((Unhealthy(silent_for=5), Cordoned()), "unhealthy"),
        ((WentOffline(silent_for=9), Cordoned()), "offline"),
        ((Draining(why="admin", deadline_s=1), Cordoned()), "draining"),
        ((Draining(why="admin", deadline_s=1), Unhealthy(silent_for=5)), "draining"),
        ((Draining(why="admin", deadline_s=1), WentOffline(silent_for=9)), "offline"),
        ((Draining(why="admin", deadline_s=1), Drained(), Cordoned()), "drained"),
        ((Draining(why="admin", deadline_s=1), Drained(), WentOffline(silent_for=9)), "drained"),
        ((Draining(why="admin", deadline_s=1), Drained(), Draining(why="admin", deadline_s=1)), "draining"),
        ((Draining(why="admin", deadline_s=1), Drained(), Resumed()), "healthy"),
        ((Draining(why="admin", deadline_s=1), Drained(), CutOff(why="too much")), "cut_off"),
        ((CutOff(why="too much"), Rejected(why="not ours")), "rejected"),
        ((CutOff(why="too much"), Rejected(why="not ours"), Removed(why="sold")), "removed"),
    ],
)
def test_the_one_word_for_a_node_is_what_weighs_most(facts: tuple[Fact, ...], state: str):
    log = FleetLog()
    id = log.node("a", 1)
    for fact in facts:
        log.add(node(id), fact)
    assert state == log.fleet.nodes[id].state
    assert (state == "healthy") == log.fleet.nodes[id].takes_replicas


def test_a_node_whose_worker_joined_is_as_it_said_of_itself():
    log = FleetLog()
    log.now = 50.0
    caps = Caps(replicas_per_model=3)
    said = joined().model_copy(update={"caps": caps, "signed_at": 42.0, "node_kind": "agent"})
    log.add(node(A), said)
    view = log.fleet.nodes[A]
    assert (caps, caps, 42.0, "agent", False) == (view.own_caps, view.caps, view.signed_at, view.kind, view.approved)


def test_a_node_that_comes_again_is_where_it_says_and_signed_last_when_it_did():
    log = FleetLog()
    log.add(node(A), joined().model_copy(update={"signed_at": 42.0}))
    there = Addresses(host="127.0.0.2", http_port=2)
    log.add(node(A), Rejoined(addresses=there, signed_at=43.0))
    assert (there, 43.0) == (log.fleet.nodes[A].addresses, log.fleet.nodes[A].signed_at)
    # a registration of which nobody noted the time leaves the last one
    log.add(node(A), Rejoined(addresses=HERE))
    assert (HERE, 43.0) == (log.fleet.nodes[A].addresses, log.fleet.nodes[A].signed_at)


def test_to_be_approved_again_changes_nothing_for_one_that_was_heard():
    log = FleetLog()
    id = log.node("a", 1)
    log.add(node(id), Approved(by="admin"))
    assert "healthy" == log.fleet.nodes[id].presence


def test_what_an_admin_allows_counts_where_it_is_said_and_else_what_the_worker_does():
    log = FleetLog()
    id = log.node("a", 1)
    own = Caps(replicas_per_model=4, vram_budget=VramBudget(share=0.5))
    log.add(node(id), Capped(caps=Caps(replicas_per_model=2)))
    log.add(node(id), Rejoined(addresses=HERE, caps=own))
    assert Caps(replicas_per_model=2, vram_budget=VramBudget(share=0.5)) == log.fleet.nodes[id].caps
    assert (own, Caps(replicas_per_model=2)) == (log.fleet.nodes[id].own_caps, log.fleet.nodes[id].set_caps)


def test_a_drain_is_known_with_its_end_and_what_it_left_until_the_node_is_resumed():
    log = FleetLog()
    id = log.node("a", 1)
    drain = Draining(why="admin", deadline_s=30)
    log.now = 1000.0
    log.add(node(id), drain)
    assert (drain, 1030.0, {}) == _drain(log, id)
    log.add(node(id), Drained(unfinished={ReplicaId("m-toy-1"): 2}))
    assert (drain, 1030.0, {"m-toy-1": 2}) == _drain(log, id)
    # another one begins anew
    log.add(node(id), drain)
    assert (drain, 1030.0, {}) == _drain(log, id)
    log.add(node(id), Resumed())
    assert (None, 0.0, {}) == _drain(log, id)


def _drain(log: FleetLog, id: NodeId) -> tuple[Draining | None, float, Mapping[ReplicaId, int]]:
    view = log.fleet.nodes[id]
    return view.drain, view.drain_ends_at, view.unfinished


@pytest.mark.parametrize(
    ("fact", "gone"), [(Unhealthy(silent_for=5), False), (WentOffline(silent_for=9), True), (Removed(why="sold"), True)]
)
def test_what_ran_on_a_node_is_lost_once_it_is_offline_or_removed(fact: Fact, gone: bool):
    log = FleetLog()
    id = log.node("a", 1)
    log.add(node(id), fact)
    assert gone is log.fleet.nodes[id].gone
    assert not log.fleet.nodes[id].takes_replicas


def test_what_others_use_is_only_known_of_devices_that_the_node_has():
    log = FleetLog()
    id = log.node("a", 100, 100)
    log.add(machine(id), PressureChanged(device=0, bytes=5), PressureChanged(device=1, bytes=7))
    log.add(machine(id), PressureChanged(device=2, bytes=9))
    assert {0: 5, 1: 7} == log.fleet.nodes[id].pressure
    # when one is taken out
    hardware = Hardware(cpus=1, memory=1, devices=(Device(index=1, vendor="nvidia", name="-", memory=100),))
    log.add(machine(id), Reported(hardware=hardware, backends=(), builtins=("tiny",), agent_version="2"))
    view = log.fleet.nodes[id]
    assert ({1: 7}, hardware, (), ("tiny",), "2") == (
        view.pressure,
        view.hardware,
        view.backends,
        view.builtins,
        view.agent_version,
    )


def test_of_a_node_that_has_not_reported_nothing_is_known_that_others_use():
    log = FleetLog()
    log.add(node(A), joined())
    log.add(machine(A), PressureChanged(device=0, bytes=5))
    assert {} == log.fleet.nodes[A].pressure


def test_a_nodes_oldest_answer_about_a_file_is_forgotten_where_there_are_too_many():
    log = FleetLog()
    id = log.node("a", 1)
    missing = [
        FileMissing(inspection=InspectionId("i"), source=f"path:/{number}", reason="no such file")
        for number in range(FILES_KEPT + 1)
    ]
    log.add(machine(id), *missing[:-1])
    assert FILES_KEPT == len(log.fleet.nodes[id].files)
    # an answer that is given again is none more
    log.add(machine(id), missing[5])
    assert FILES_KEPT == len(log.fleet.nodes[id].files)
    log.add(machine(id), missing[-1])
    assert [each.source for each in missing[1:]] == list(log.fleet.nodes[id].files)
