"""Facts survive the wire; what can't be read is named, never an exception."""

import json

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from weft_contracts import codec, headers, upcast
from weft_contracts.catalogue import CATALOGUE, Entry
from weft_contracts.commit import MAX_COMMIT_BYTES, Cause, Commit
from weft_contracts.facts import node, request, run
from weft_contracts.facts.fact import Fact, Unknown, Unreadable, Voided
from weft_contracts.ids import CorrelationId, EventId, Incarnation, ReplicaId, RequestId
from weft_contracts.subjects import Aggregate, Kind, parse
from weft_contracts.subjects import request as request_of
from weft_testing.drawn import drawn

st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
CAUSE = Cause(CorrelationId("c"))


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    entry: Entry = draw(st.sampled_from(CATALOGUE))
    try:
        return draw(drawn(entry.fact, v=st.just(1)))
    except ValidationError:
        return node.Healthy()


@given(facts())
def test_any_fact_comes_back_as_it_was_written(fact: Fact) -> None:
    assume("\\u0000" not in fact.model_dump_json())  # what a worker writes must fit into a database's text
    key = "n-a.m-a-1" if fact.kind in ("run", "inspection") else "x-a"
    body = b"[" + fact.model_dump_json().encode() + b"]"
    subject = Aggregate(fact.kind, key).subject(fact.type)
    assert (fact,) == codec.decode(subject, 1, body, {}, 0.0).facts


def test_several_facts_of_one_commit_keep_their_order() -> None:
    commit = Commit(
        Aggregate("run", "n-a.m-a-1"),
        (
            run.Loading(epoch=1, incarnation=Incarnation("i")),
            run.Ready(epoch=1, incarnation=Incarnation("i"), port=1, engine="simulated", engine_version="1"),
        ),
        None,
        CAUSE,
    )
    assert commit.facts == codec.decode_facts("run", codec.encode(commit))


@given(st.binary(max_size=200))
def test_any_bytes_decode_to_something_and_never_raise(body: bytes) -> None:
    assert codec.decode_facts("node", body) is not None


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"[1]", b'[{"type":"joined","v":1}]', b"\xff"])
def test_a_body_that_is_no_list_of_facts_is_unreadable_and_says_why(body: bytes) -> None:
    (fact,) = codec.decode_facts("node", body)
    assert isinstance(fact, Unreadable)
    assert fact.why


def test_an_unknown_type_is_unknown_and_skippable_only_where_its_writer_says_so() -> None:
    body = b'[{"type":"sang","v":1}]'
    (plain,) = codec.decode_facts("node", body)
    (skippable,) = codec.decode_facts("node", body, frozenset({"sang"}))
    assert (False, True) == tuple(isinstance(f, Unknown) and f.skippable for f in (plain, skippable))


def test_a_known_type_in_a_newer_version_is_unknown_not_misread() -> None:
    (fact,) = codec.decode_facts("node", b'[{"type":"healthy","v":2,"louder":true}]')
    assert Unknown(type="healthy", v=2, skippable=False) == fact


def test_a_field_that_a_newer_writer_added_is_passed_over() -> None:
    (fact,) = codec.decode_facts("node", b'[{"type":"healthy","v":1,"mood":"good"}]')
    assert node.Healthy() == fact


VOIDED = b'[{"type":"voided","v":1,"sequence":7,"why":"garbled"}]'


def test_any_aggregate_may_bear_a_voided() -> None:
    assert (Voided(sequence=7, why="garbled"),) == codec.decode_facts("node", VOIDED)
    assert (Voided(sequence=7, why="garbled"),) == codec.decode_facts("machine", VOIDED, said="voided")


@pytest.mark.parametrize("body", [VOIDED, b'[{"type":"mood"}]', b'[{"type":"loading","v":2}]'])
def test_under_another_subject_a_worker_neither_voids_nor_speaks_of_what_is_unknown(body: bytes) -> None:
    """An unknown fact stops its readers until they are upgraded: no worker may do that to the others."""
    (fact,) = codec.decode_facts("run", body, said="loading")
    assert isinstance(fact, Unreadable)


ODD_TEXT = st.text(st.characters(codec=None, categories=None), max_size=8)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ODD_TEXT | st.just("loading") | st.just("voided"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "v", "epoch", "x"]), inner),
    max_leaves=8,
)


@given(
    st.binary(max_size=60) | ODD.map(lambda odd: json.dumps([odd]).encode()),
    st.sampled_from(["run", "machine", "node"]),
)
@example(b"[" * 30_000 + b"]" * 30_000, "run")
@example(b'[{"type":"loading","epoch":' + b"[" * 9_000 + b"]" * 9_000 + b"}]", "run")
@example(b'[{"type":"loading","v":1e400}]', "run")
@example(b'[{"type":"\\ud800","v":2}]', "node")
@example(b'[{"type":"loading","epoch":1,"incarnation":"\\ud800"}]', "run")
@example(b'[{"type":"fetching","epoch":1,"bytes":' + b"9" * 4_000 + b"}]", "run")
@example(b'[{"type":"loading","epoch":1,"incarnation":"a\\u0000"}]', "run")
def test_whatever_a_commit_holds_it_becomes_facts_that_can_be_kept(body: bytes, kind: Kind) -> None:
    facts = codec.decode_facts(kind, body)
    assert facts
    for fact in facts:
        assert fact.model_dump_json().encode()


def test_a_header_that_would_not_fit_into_what_follows_is_passed_over() -> None:
    odd = {
        headers.CORRELATION_ID: "c" * 201,
        headers.CAUSATION_ID: "a\nb",
        headers.EVENT_ID: "é",
        headers.ACTOR: "an-admin",
    }
    commit = codec.decode("weft.ev.run.n-a.m-1.loading", 1, b"[]", odd, 0.0)
    assert ("", None, "") == (commit.correlation_id, commit.causation_id, commit.event_id)


def test_a_nodes_own_commits_are_its_own_whatever_they_say() -> None:
    commit = codec.decode("weft.ev.machine.n-a.reported", 1, b"[]", {headers.ACTOR: "an-admin"}, 0.0)
    assert "n-a" == commit.actor


def test_a_commit_over_64_kib_is_refused_before_it_is_sent() -> None:
    fact = request.Rejected(status=400, reason="x" * MAX_COMMIT_BYTES)
    with pytest.raises(codec.CommitTooLarge, match="65536 are allowed"):
        codec.encode(Commit(request_of(RequestId("q-a")), (fact,), None, CAUSE))


def test_the_writer_marks_what_others_may_skip() -> None:
    commit = Commit(Aggregate("run", "n-a.m-a-1"), (run.Installing(epoch=1, engine="simulated"),), None, CAUSE)
    assert "installing" == codec.encode_headers(commit, EventId("e"), "me")[headers.SKIPPABLE]


def test_old_versions_are_lifted_step_by_step() -> None:
    # given a fact whose field was renamed in version 2 and split in version 3
    def second(body: upcast.Body) -> upcast.Body:
        return {**body, "title": body["name"]}

    def third(body: upcast.Body) -> upcast.Body:
        return {**body, "words": body["title"].split()}

    lifts: dict[tuple[str, str, int], upcast.Lift] = {("node", "named", 1): second, ("node", "named", 2): third}
    # when
    body = upcast.lift("node", {"type": "named", "v": 1, "name": "a b"}, lifts)  # pyright: ignore[reportArgumentType]
    # then
    assert (3, ["a", "b"]) == (body["v"], body["words"])


@given(st.sampled_from(CATALOGUE))
def test_a_subject_names_its_aggregate_again(entry: Entry) -> None:
    key = "n-a.m-a-1" if entry.kind in ("run", "inspection") else "x-1"
    aggregate = Aggregate(entry.kind, key)
    assert (aggregate, entry.type) == parse(aggregate.subject(entry.type))
    assert json.dumps(aggregate.filter)


def test_replica_ids_lead_back_to_their_model() -> None:
    from weft_contracts.ids import ModelId, model_of, replica_id

    assert "m-abc" == model_of(replica_id(ModelId("m-abc"), 12))
    assert "m-a-b" == model_of(ReplicaId("m-a-b-3"))
