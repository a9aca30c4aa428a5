"""Secrets as the log knows them, and who names them."""

from typing import Any

import pytest
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.machine import FileMissing
from weft_contracts.facts.mesh import SecretRemoved, SecretSet
from weft_contracts.facts.model import Deleted
from weft_contracts.facts.node import Assigned, FilesRetired, FilesWanted, Unassigned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Stopped
from weft_contracts.facts.source import HfSource, SimulatedSource
from weft_contracts.facts.values import Member, ModelSpec, Receipt
from weft_contracts.ids import InspectionId, NodeId, ReplicaId
from weft_contracts.secrets import is_secret_name, secrets_in
from weft_contracts.subjects import MESH, inspection, machine, model, node, run
from weft_contracts.subjects import replica as aggregate_of
from weft_fleet import SecretView
from weft_fleet.secrets_named import models_naming, node_names, secrets_by_node
from weft_testing.fleet_log import FleetLog, refold

PLAIN = ModelSpec(source=SimulatedSource(), engine="simulated")
KEYED = PLAIN.model_copy(update={"engine_args": {"api_key": "secret:key"}})


RECEIPT = Receipt(
    position=1,
    policy="p",
    policy_digest="d",
    seed=0,
    trigger="e",
    decided_at=0.0,
    refusals={},
    candidates=(),
)


def place(log: FleetLog, id: ReplicaId, on: NodeId) -> None:
    view = log.fleet.replicas[id]
    members = (Member(node=on, rank=0, devices=()),)
    _, spec = log.fleet.spec_of(view)
    place: dict[str, Any] = {"model": view.model, "revision": view.revision, "epoch": 1, "members": members}
    log.add(node(on), Assigned(replica=id, model_name="mine", digest=view.digest, spec=spec, **place))
    log.add(aggregate_of(id), Placed(receipt=RECEIPT, **place))


def test_the_last_value_that_was_set_counts_until_it_is_removed() -> None:
    log = FleetLog()
    log.add(MESH, SecretSet(name="key", version=3, sealed="a" * 32))
    later = log.add(MESH, SecretSet(name="key", version=9, sealed="b" * 32))
    assert {"key": SecretView(9, "b" * 32, later.at)} == log.fleet.secrets
    assert refold(log.commits).digest() == log.fleet.digest()
    log.add(MESH, SecretRemoved(name="key"))
    assert {} == log.fleet.secrets


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, set[str]()),
        ({"api_key": "secret:a"}, {"a"}),
        ({"key": "secret:a", "other": "secret:b", "n": 1, "on": True, "text": "a secret: b"}, {"a", "b"}),
        ({"deep": {"list": ["secret:a", ["secret:b"], {"more": "secret:c"}]}}, {"a", "b", "c"}),
        ({"empty": "secret:", "wrong": "secret:a b"}, {"", "a b"}),
    ],
)
def test_arguments_name_secrets_however_deep(arguments: dict[str, object], named: set[str]) -> None:
    assert named == secrets_in(arguments)


@pytest.mark.parametrize("name", ["a", "A-1_b", "7", "a" * 63])
def test_what_a_secret_can_be_called(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["", "-a", "_a", "a.b", "a b", "ä", "a" * 64, "a\n", "a:b", "a/b", "a*", ">"])
def test_what_a_secret_can_not_be_called(name: str) -> None:
    assert not is_secret_name(name)


def test_a_secret_is_named_by_models_while_a_live_revision_does() -> None:
    log = FleetLog()
    id = log.model("mine", KEYED, replicas=1)
    log.model("other", PLAIN, replicas=1)
    assert ["mine"] == models_naming(log.fleet, "key")
    assert [] == models_naming(log.fleet, "another")
    # a newer revision without it: the replica of the one before still has it
    log.model("mine", PLAIN)
    assert ["mine"] == models_naming(log.fleet, "key")
    log.add(model(id), Deleted())
    assert [] == models_naming(log.fleet, "key")


def test_a_node_may_have_what_its_assignments_name_until_the_run_has_ended() -> None:
    log = FleetLog()
    here, there = log.node("here", 1 << 30, vendor="cpu"), log.node("there", 1 << 30, vendor="cpu")
    id = log.model("mine", KEYED, replicas=1)
    (replica,) = log.fleet.models[id].replicas
    assert {} == secrets_by_node(log.fleet)
    place(log, replica, here)
    assert {here: {"key"}} == secrets_by_node(log.fleet)
    assert (True, False) == (node_names(log.fleet, here, "key"), node_names(log.fleet, there, "key"))
    assert not node_names(log.fleet, here, "another")
    # what it runs it may end with its key
    log.add(node(here), Unassigned(replica=replica, deadline_s=1.0, why="not wanted"))
    assert node_names(log.fleet, here, "key")
    log.add(run(here, replica), Stopped(epoch=1, why="retired"))
    assert not node_names(log.fleet, here, "key")
    assert {} == secrets_by_node(log.fleet)


def test_a_node_may_have_what_a_source_names_while_it_is_to_look_at_it_or_to_run_it() -> None:
    log = FleetLog()
    here, there = log.node("here", 1 << 30, vendor="cpu"), log.node("there", 1 << 30, vendor="cpu")
    # asked to look
    source = "hf:o/m secret:token"
    log.add(inspection(here, InspectionId("i-1")), Requested(source=source, engine="vllm"))
    assert {here: {"token"}} == secrets_by_node(log.fleet)
    assert (True, False) == (node_names(log.fleet, here, "token"), node_names(log.fleet, there, "token"))
    # answered
    log.add(machine(here), FileMissing(inspection=InspectionId("i-1"), source=source, reason="it is away"))
    assert {} == secrets_by_node(log.fleet)
    assert not node_names(log.fleet, here, "token")
    # to run
    fetched = PLAIN.model_copy(update={"source": HfSource(repository="o/m", secret="token")})
    id = log.model("fetched", fetched, replicas=1)
    (replica,) = log.fleet.models[id].replicas
    place(log, replica, there)
    assert ["fetched"] == models_naming(log.fleet, "token")
    assert {there: {"token"}} == secrets_by_node(log.fleet)


def test_a_node_may_have_what_a_source_names_while_it_is_to_have_its_files() -> None:
    log = FleetLog()
    here, there = log.node("here", 1 << 30, vendor="cpu"), log.node("there", 1 << 30, vendor="cpu")
    source = HfSource(repository="o/m", secret="token")
    log.add(node(here), FilesWanted(files="f", source=source, listed=(), bytes=1))
    assert {here: {"token"}} == secrets_by_node(log.fleet)
    assert (True, False) == (node_names(log.fleet, here, "token"), node_names(log.fleet, there, "token"))
    log.add(node(here), FilesRetired(files="f"))
    assert {} == secrets_by_node(log.fleet)
