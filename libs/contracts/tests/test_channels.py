"""Channels: each message has one, and filters find the ones that they hear."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts import channels, permissions, subjects
from weft_contracts.catalogue import CATALOGUE, SERVICES, Writer, written_by
from weft_contracts.channels import CHANNELS, heard_through, overlap, sent_by
from weft_contracts.ids import NodeId
from weft_contracts.topology import worker_durable

tokens = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4)
filters = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from([".".join(parts), ".".join([*parts, ">"])])
)


def fits(subject: str, filter: str) -> bool:
    """As the server reads a filter."""
    pattern = re.escape(filter).replace(r"\*", "[^.]+").replace(">", ".+")
    return re.fullmatch(pattern, subject) is not None


def test_every_fact_has_one_channel_whose_addresses_are_subjects_of_its_aggregate() -> None:
    of_facts = [each for each in CHANNELS if each.entry is not None]
    assert list(CATALOGUE) == [each.entry for each in of_facts]
    for each in of_facts:
        assert each.entry is not None
        aggregate, type = subjects.parse(re.sub(r"\{.*?\}", "x", each.address))
        assert (each.entry.kind, each.entry.type) == (aggregate.kind, type)


def test_no_two_channels_share_a_name_or_a_subject() -> None:
    assert len(CHANNELS) == len({each.name for each in CHANNELS})
    assert [] == [
        (one.name, other.name)
        for place, one in enumerate(CHANNELS)
        for other in CHANNELS[place + 1 :]
        if overlap(one.pattern, other.pattern)
    ]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_may_publish_to_each_channel_that_it_is_said_to_write(service: Writer) -> None:
    allowed = permissions.service(service).publish
    assert len(written_by(service)) < len(sent_by(service))
    assert [] == [each.name for each in sent_by(service) if not any(overlap(a, each.pattern) for a in allowed)]


def test_a_worker_may_publish_to_each_channel_that_it_is_said_to_write() -> None:
    node = NodeId("n-one")
    allowed = permissions.worker(node).publish
    assert [] == [each.name for each in sent_by("worker") if not any(overlap(a, each.pattern) for a in allowed)]


def test_a_worker_hears_its_part_of_the_log_and_no_more() -> None:
    heard = heard_through(*worker_durable(NodeId("n-one")).filters)
    assert {"node", "machine", "run", "inspection"} == {each.entry.kind for each in heard if each.entry}
    assert all(each.entry for each in heard)


def test_one_filter_hears_one_channel() -> None:
    assert ("lease.node",) == tuple(each.name for each in heard_through("weft.lease.node.*"))
    assert ("lease.echo",) == tuple(each.name for each in heard_through("weft.lease.service.registry.r-1"))
    assert len(CATALOGUE) == len(heard_through("weft.ev.>"))


@given(tokens, filters, filters)
def test_filters_that_share_a_subject_overlap(subject: list[str], one: str, other: str) -> None:
    if fits(".".join(subject), one) and fits(".".join(subject), other):
        assert overlap(one, other)


@given(filters, filters)
def test_filters_that_overlap_share_a_subject(one: str, other: str) -> None:
    subjects_of = [""]
    for _ in range(6):
        subjects_of = [*subjects_of, *(f"{s}.{t}".strip(".") for s in subjects_of for t in "ab")]
    shared = any(fits(s, one) and fits(s, other) for s in dict.fromkeys(subjects_of))
    assert shared == overlap(one, other)


def test_the_pattern_of_a_channel_covers_its_address() -> None:
    for each in channels.CHANNELS:
        assert fnmatchcase(each.address, each.pattern)
        assert each.pattern.count("*") == len(each.parameters)
