"""What a replica waits for and holds, made of what its nodes said of it and of no other."""

from typing import Any

import pytest
from weft_contracts.commit import Cause
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.node import Joined
from weft_contracts.facts.values import Addresses, Device, DeviceClaim, Hardware, Member
from weft_contracts.ids import CorrelationId, EventId, ModelId, NodeId, ReplicaId, TokenId
from weft_contracts.signals import FetchSaid, InstallSaid, LoadSaid, MemorySaid, NodeProgress
from weft_contracts.subjects import machine, node
from weft_fleet import Fleet, ReplicaView, RunView
from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.domain.progress_shapes import fetch_shape, installs_of, load_shape, replica_progress
from weft_testing.fleet_log import FleetLog

A, B, OURS, OTHER = NodeId("n-a"), NodeId("n-b"), ReplicaId("m-toy-1"), ReplicaId("m-toy-2")
MEMBERS = (
    Member(node=A, rank=0, devices=(DeviceClaim(index=0, bytes=7), DeviceClaim(index=1, bytes=1))),
    Member(node=B, rank=1, devices=(DeviceClaim(index=0, bytes=5),)),
)
INSTALL = InstallSaid(engine="simulated", version="1.0", vendor="cpu", phase="resolving", since_s=961.0)


def fetch(replica: ReplicaId = OURS, **fields: Any) -> FetchSaid:
    given = {"replica": replica, "source": "hf:o/r", "phase": "fetching", "fetched": 40, "total": 100}
    return FetchSaid.model_validate(given | fields)


def load(replica: ReplicaId = OURS, **fields: Any) -> LoadSaid:
    return LoadSaid.model_validate({"replica": replica, "taken": 30, "total": 100, "loading_s": 0.0} | fields)


def view(**phases: Any) -> ReplicaView:
    """A replica of two members with a run in each of these phases; `a` and `b` are the nodes."""
    runs = {
        NodeId(f"n-{name}"): RunView(
            NodeId(f"n-{name}"), 1, phase, EventId("e"), CorrelationId("c"), 9, 1.0, engine="simulated"
        )
        for name, phase in phases.items()
    }
    cause = Cause(CorrelationId("c"))
    return ReplicaView(OURS, ModelId("m-toy"), 1, 1, "d-1", cause, members=MEMBERS, epoch=1, runs=runs)


@pytest.fixture
def board() -> ProgressBoard:
    return ProgressBoard()


def says(board: ProgressBoard, node: NodeId, **said: Any) -> None:
    board.heard(node, NodeProgress.model_validate({"node": node, **said}), 1.0)


def shown(board: ProgressBoard, of: ReplicaView, fleet: Fleet | None = None) -> dict[str, Any] | None:
    found = replica_progress(fleet or Fleet(), board, of)
    return None if found is None else {**found}


def test_a_fetch_is_the_replicas_own_and_no_other_replicas(board: ProgressBoard) -> None:
    # given a node that fetches for two replicas
    says(board, A, fetches=(fetch(OTHER, fetched=1), fetch(OURS)))
    # then each is shown its own, while its run fetches
    found = shown(board, view(a="fetching"))
    assert found is not None
    assert ("fetching 40 % of 100 B", fetch_shape(A, fetch(OURS))) == (found["about"], found["fetch"])
    assert (None, None) == (found["install"], found["load"])
    # and nothing where it does not fetch, has no run, or its node says nothing
    assert shown(board, view(a="loading")) is None
    assert shown(board, view()) is None
    assert shown(board, view(b="fetching")) is None


def test_a_load_is_the_replicas_own_and_no_other_replicas(board: ProgressBoard) -> None:
    says(board, A, loads=(load(OTHER, taken=1), load(OURS)))
    found = shown(board, view(a="loading"))
    assert found is not None
    assert ("loading weights, 30 of 100 B", load_shape(A, load(OURS))) == (found["about"], found["load"])
    assert (None, None) == (found["install"], found["fetch"])
    assert shown(board, view(a="fetching")) is None
    assert shown(board, view()) is None
    assert shown(board, view(b="loading")) is None


@pytest.mark.parametrize(
    ("far", "less"),
    [((40, 100), (90, 1000)), ((1, 1), (75, 100)), ((1, 100), (0, 0))],
    ids=["by its share and not by its bytes", "of one byte", "of no figures"],
)
@pytest.mark.parametrize(("first", "second"), [(A, B), (B, A)])
def test_of_several_members_the_one_that_is_least_far_is_shown(
    board: ProgressBoard, first: NodeId, second: NodeId, far: tuple[int, int], less: tuple[int, int]
) -> None:
    for each, (done, total) in ((first, far), (second, less)):
        says(board, each, fetches=(fetch(fetched=done, total=total),), loads=(load(taken=done, total=total),))
    for phase, part in (("fetching", "fetch"), ("loading", "load")):
        found = shown(board, view(a=phase, b=phase))
        assert found is not None
        assert second == found[part]["node"]


def test_a_fetch_goes_before_a_load_and_an_install_before_both(board: ProgressBoard) -> None:
    says(board, A, fetches=(fetch(),), installs=(INSTALL,))
    says(board, B, loads=(load(),))
    found = shown(board, view(a="fetching", b="loading"))
    assert found is not None
    assert ("fetching 40 % of 100 B", True) == (found["about"], found["load"] is not None)
    # an install is the run's where the run installs, and of its engine
    found = shown(board, view(a="installing", b="loading"))
    assert found is not None
    assert "installing simulated: choosing packages" == found["about"]
    assert installs_of(board, A) == [found["install"]]
    says(board, A, installs=(INSTALL.model_copy(update={"engine": "vllm"}), INSTALL))
    found = shown(board, view(a="installing"))
    assert found is not None
    assert found["install"] is not None
    assert "simulated" == found["install"]["engine"]
    # and one that is overdue says so in its own words
    says(board, A, installs=(INSTALL.model_copy(update={"overdue": True}),))
    found = shown(board, view(a="installing"))
    assert found is not None
    assert "still installing after 16 min: choosing packages" == found["about"]


def test_an_install_of_another_engine_or_of_a_silent_node_is_not_the_replicas(board: ProgressBoard) -> None:
    assert [] == installs_of(board, A)
    says(board, A, installs=(INSTALL.model_copy(update={"engine": "vllm"}),))
    assert shown(board, view(a="installing")) is None
    assert shown(board, view(b="installing")) is None
    assert shown(board, view()) is None


def test_devices_are_shown_with_names_claims_and_what_the_replica_holds_of_each(board: ProgressBoard) -> None:
    # given a node that is known with its devices, and one that the log forgot
    log = FleetLog()
    here = Addresses(host="127.0.0.1", http_port=1)
    log.add(node(A), Joined(name="alpha", public_key="U", token=TokenId("t"), addresses=here, labels={}))
    devices = (
        Device(index=1, vendor="nvidia", name="H200", memory=9),
        Device(index=0, vendor="cpu", name="-", memory=9),
    )
    hardware = Hardware(cpus=1, memory=9, devices=devices)
    log.add(machine(A), Reported(hardware=hardware, backends=(), builtins=(), agent_version="1"))
    # when one says what it holds for this replica and for another
    held = (
        MemorySaid(replica=OURS, device=0, used=6),
        MemorySaid(replica=OTHER, device=1, used=9),
        MemorySaid(replica=OURS, device=2, used=3),
    )
    says(board, A, memory=held)
    # then each claimed device is shown, the unheard without a figure
    found = shown(board, view(a="ready"), log.fleet)
    assert {
        "about": "",
        "install": None,
        "fetch": None,
        "load": None,
        "devices": [
            {"node": A, "node_name": "alpha", "index": 0, "name": "-", "claimed": 7, "used": 6},
            {"node": A, "node_name": "alpha", "index": 1, "name": "H200", "claimed": 1, "used": None},
            {"node": B, "node_name": "", "index": 0, "name": "", "claimed": 5, "used": None},
        ],
    } == found
    # and a node that has joined and not reported has a name, and its devices have none
    silent = FleetLog()
    silent.add(node(A), Joined(name="alpha", public_key="U", token=TokenId("t"), addresses=here, labels={}))
    found = shown(board, view(a="ready"), silent.fleet)
    assert found is not None
    assert [("alpha", ""), ("alpha", ""), ("", "")] == [(each["node_name"], each["name"]) for each in found["devices"]]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_940, "9.9 kB"),
        (9_950, "10 kB"),
        (38_500_000, "38 MB"),
        (999_400_000, "999 MB"),
        (999_500_000, "1.0 GB"),
        (2_100_000_000, "2.1 GB"),
        (70_000_000_000_000, "70 TB"),
        (7_000_000_000_000_000, "7000 TB"),
    ],
)
def test_sizes_are_said_in_decimal_units_as_sources_count_them(size: int, text: str) -> None:
    about = fetch_shape(A, fetch(fetched=0, total=size))["about"]
    assert f"fetching 0 % of {text}" == about
