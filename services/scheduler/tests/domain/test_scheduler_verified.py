"""A log's decisions come out again from it, and who changes a receipt or what it rests on is found."""

from dataclasses import replace

import pytest
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Fact, Unreadable, Voided
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.subjects import machine
from weft_placement.verify import Verified, verify

from .test_scheduler_decide import GIB, Mesh, spec


@pytest.fixture
def log() -> list[Recorded]:
    """Two nodes, three replicas with a place and one without."""
    mesh = Mesh()
    mesh.log.node("a", 8 * GIB)
    mesh.log.node("b", 4 * GIB)
    mesh.log.model("toy", spec(), replicas=3)
    mesh.log.model("large", spec(16 * GIB), replicas=1)
    mesh.settle()
    return mesh.log.commits


def with_fact(log: list[Recorded], kind: type[Fact], update: dict[str, object]) -> Verified:
    """What is said of the same log with the first fact of this kind changed."""
    changed = list(log)
    for index, commit in enumerate(log):
        if any(isinstance(fact, kind) for fact in commit.facts):
            facts = tuple(f.model_copy(update=update) if isinstance(f, kind) else f for f in commit.facts)
            changed[index] = replace(commit, facts=facts)
            return verify(changed)
    raise AssertionError(f"the log has no {kind.__name__}")


def receipt_of(log: list[Recorded], kind: type[Placed] | type[Unplaceable]) -> Placed | Unplaceable:
    return next(fact for commit in log for fact in commit.facts if isinstance(fact, kind))


def test_every_decision_of_a_log_comes_out_again(log: list[Recorded]) -> None:
    found = verify(log)
    assert ([], {"placed": 3, "unplaceable": 1}) == (found.mismatches, dict(found.decisions))


@pytest.mark.parametrize("kind", [Placed, Unplaceable])
@pytest.mark.parametrize(
    ("update", "what"),
    [
        ({"refusals": {"is cordoned": 5}}, "refusals is"),
        ({"policy_digest": "0" * 16}, "its policy's digest is"),
        ({"policy": "name=none"}, "is no policy"),
        ({"position": 1_000_000}, "a position that the log doesn't have"),
        ({"position": 1}, "its replica wasn't there"),
    ],
)
def test_a_changed_receipt_is_found(
    log: list[Recorded], kind: type[Placed] | type[Unplaceable], update: dict[str, object], what: str
) -> None:
    receipt = receipt_of(log, kind).receipt.model_copy(update=update)
    found = with_fact(log, kind, {"receipt": receipt}).mismatches
    assert any(what in each.what for each in found), found


def test_a_decision_about_who_is_set_aside_comes_out_again_until_its_commit_is_void() -> None:
    # given a node about which the log can't be read, and one replica that therefore has no place
    mesh = Mesh()
    a = mesh.log.node("a", 8 * GIB)
    unread = mesh.log.add(machine(a), Unreadable(why="not JSON")).sequence
    mesh.log.model("toy", spec(), replicas=1)
    mesh.log.take(mesh.decide(suspects=[machine(a)]))
    # when an operator voids the commit
    mesh.log.add(machine(a), Voided(sequence=unread, why="looked at"))
    mesh.now += 61
    mesh.settle()
    # then both decisions come out again, and without that commit the first doesn't
    found = verify(mesh.log.commits)
    assert ([], {"placed": 1, "unplaceable": 1}) == (found.mismatches, dict(found.decisions))
    without = [commit for commit in mesh.log.commits if commit.sequence != unread]
    assert [] != verify(without).mismatches


def test_another_choice_than_the_receipts_is_found(log: list[Recorded]) -> None:
    placed = receipt_of(log, Placed)
    assert isinstance(placed, Placed)
    other = placed.members[0].model_copy(update={"node": "n-b" if placed.members[0].node == "n-a" else "n-a"})
    assert any("it would go to" in each.what for each in with_fact(log, Placed, {"members": (other,)}).mismatches)


def test_a_changed_fact_about_capacity_is_found(log: list[Recorded]) -> None:
    reported = next(fact for commit in log for fact in commit.facts if isinstance(fact, Reported))
    devices = tuple(each.model_copy(update={"memory": each.memory // 16}) for each in reported.hardware.devices)
    hardware = reported.hardware.model_copy(update={"devices": devices})
    assert [] != with_fact(log, Reported, {"hardware": hardware}).mismatches
