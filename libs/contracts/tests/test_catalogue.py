"""The catalogue holds every fact, its budget, and what each party may write."""

import importlib
import json
import pkgutil

import pytest
from weft_contracts import catalogue, facts, permissions
from weft_contracts.channels import overlap
from weft_contracts.facts.fact import Fact, Unknown, Unreadable, Voided
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_contracts.ids import NodeId
from weft_contracts.subjects import ids_of


def _all_facts() -> set[type[Fact]]:
    for module in pkgutil.iter_modules(facts.__path__):
        importlib.import_module(f"{facts.__name__}.{module.name}")
    found: set[type[Fact]] = set()
    todo: list[type[Fact]] = [Fact]
    while todo:
        for cls in todo.pop().__subclasses__():
            todo.append(cls)
            if "type" in cls.model_fields and cls.model_fields["type"].default is not None and "kind" in dir(cls):
                found.add(cls)
    return found - {Voided, Unknown, Unreadable}


def test_every_fact_stands_in_the_catalogue_once() -> None:
    listed = [entry.fact for entry in catalogue.CATALOGUE]
    assert len(set(listed)) == len(listed)
    assert {cls for cls in _all_facts() if isinstance(cls.model_fields["type"].default, str)} == set(listed)


def test_a_mesh_of_a_thousand_nodes_stays_within_the_budget_of_the_log() -> None:
    assert catalogue.BUDGET_PER_SECOND >= catalogue.per_second() > 0


def test_no_fact_is_without_a_writer() -> None:
    assert [] == [entry for entry in catalogue.CATALOGUE if not entry.writers]


def test_every_request_for_change_has_one_owner_and_who_owns_none_may_answer_none() -> None:
    # given
    owned = {entry.fact: entry.owner for entry in catalogue.CATALOGUE if entry.owner is not None}
    requests = {entry.fact for entry in catalogue.CATALOGUE if entry.kind == "request"}
    # then
    assert requests - {Fulfilled, Rejected} == owned.keys() == catalogue.OWNERS.keys()
    for outcome in (Fulfilled, Rejected):
        assert set(owned.values()) == set(catalogue.BY_TYPE["request", outcome.model_fields["type"].default].writers)


@pytest.mark.parametrize("name", catalogue.SERVICES)
def test_a_service_may_write_its_own_facts_and_no_others(name: catalogue.Writer) -> None:
    # given
    events = {s for s in permissions.service(name).publish if s.startswith("weft.ev.")}
    # then
    for entry in catalogue.CATALOGUE:
        subject = f"weft.ev.{entry.kind}.{'.'.join('x' for _ in ids_of(entry.kind))}.{entry.type}"
        assert (name in entry.writers) == any(overlap(filter, subject) for filter in events), subject
    assert not any(s.endswith(">") for s in events)


@pytest.mark.parametrize("name", catalogue.SERVICES)
def test_a_services_token_stays_far_from_the_longest_line_that_a_server_reads(name: catalogue.Writer) -> None:
    """4,096 bytes, in which the token stands by four bytes for three, with its signature and what the client says."""
    allowed = permissions.service(name)
    assert 2_000 > len(json.dumps([*allowed.publish, *allowed.subscribe], separators=(",", ":")))


def test_two_services_share_no_snapshot_that_they_may_write() -> None:
    written = [{s for s in permissions.service(n).publish if "snapshot" in s} for n in catalogue.SERVICES]
    assert len(catalogue.SERVICES) == len(set[str].union(*written)) == sum(map(len, written))


def test_two_workers_share_no_subject_that_they_may_publish_to() -> None:
    one, other = (set(permissions.worker(NodeId(n)).publish) for n in ("n-one", "n-two"))
    assert set() == one & other


def test_two_observers_share_no_subject_that_they_may_publish_to_and_none_is_a_fact_a_lease_or_a_signal() -> None:
    one, other = (set(permissions.observer(name).publish) for name in ("o", "other"))
    assert set() == one & other
    assert [] == [subject for subject in one if not subject.startswith("$JS.")]


def test_what_an_observer_may_send_is_what_its_account_reaches() -> None:
    reached = [each.subject for each in permissions.OBSERVER_IMPORTS]
    assert all(any(overlap(filter, subject) for filter in reached) for subject in permissions.observer("o").publish)
