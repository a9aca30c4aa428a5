"""Versions of facts: written in the lowest that can say it, read by who says so, raised once and never taken back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from weft_contracts import formats
from weft_contracts.catalogue import CATALOGUE, SERVICES
from weft_contracts.codec import decode_facts, encode
from weft_contracts.commit import Cause, Commit
from weft_contracts.digest import revision_digest
from weft_contracts.engines import BUILTIN, Argument
from weft_contracts.facts.arguments import MOST_DEPTH, MOST_VALUES
from weft_contracts.facts.fact import Fact, Unknown, Versioned
from weft_contracts.facts.layout import Layout
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.mesh import EngineProfileSet, FormatRaised
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.request import DeployRequested, EngineProfileRequested, TrialRequested
from weft_contracts.facts.source import (
    FetchedSource,
    HfSource,
    HttpsSource,
    S3Source,
    SimulatedSource,
    SourceFile,
    UploadSource,
)
from weft_contracts.facts.values import ModelSpec
from weft_contracts.formats import unwritable
from weft_contracts.ids import CorrelationId, ModelId, ReplicaId
from weft_contracts.subjects import Aggregate

PLAIN = st.booleans() | st.integers(-(1 << 60), 1 << 60) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(st.none() | PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
ARGUMENTS = st.dictionaries(
    st.text(min_size=1), PLAIN | st.lists(JSON, max_size=4) | st.dictionaries(st.text(), JSON, max_size=4), max_size=4
)


def spec(**arguments: Any) -> ModelSpec:
    return ModelSpec(source=SimulatedSource(), engine="simulated", engine_args=arguments)


def facts_of(spec: ModelSpec) -> list[Fact]:
    return [
        SpecAccepted(name="m", revision=1, digest="d", spec=spec),
        DeployRequested(name="m", spec=spec),
        TrialRequested(name="m", spec=spec),
        Assigned(
            replica=ReplicaId("m-1-1"),
            model=ModelId("m-1"),
            model_name="m",
            revision=1,
            digest="d",
            epoch=1,
            members=(),
            spec=spec,
        ),
    ]


def body_of(fact: Fact) -> bytes:
    return encode(Commit(Aggregate(fact.kind, "x"), (fact,), None, Cause(CorrelationId("c"))))


@given(ARGUMENTS)
def test_a_fact_is_written_in_the_lowest_version_that_can_say_it_and_comes_back_the_same(given: dict[str, Any]) -> None:
    structured = any(isinstance(value, list | dict) for value in given.values())
    for fact in facts_of(spec(**given)):
        assert (2 if structured else 1) == fact.v
        assert (fact,) == decode_facts(fact.kind, body_of(fact))


def test_what_version_1_can_say_is_written_byte_for_byte_as_before() -> None:
    body = body_of(SpecAccepted(name="m", revision=1, digest="d", spec=spec(a=1, b=True, c=1.5, d="t")))
    assert body == (
        b'[{"type":"spec_accepted","v":1,"name":"m","revision":1,"digest":"d","spec":{"source":{"kind":"simulated"},'
        b'"engine":"simulated","context_tokens":1024,"concurrency":8,"engine_args":{"a":1,"b":true,"c":1.5,"d":"t"},'
        b'"min_replicas":1,"max_replicas":1,"selector":{},"strategy":"binpack","weights":{"format":"none",'
        b'"architecture":"","weight_bytes":0,"kv_bytes_per_token":0,"layers":0,"heads":0,"kv_heads":0,'
        b'"vision_heads":0,"context_tokens":0,"embeds":false,"fingerprint":""}}}]'
    )


def test_a_profile_with_a_list_or_an_object_takes_version_2_and_every_other_version_1() -> None:
    for profile in BUILTIN.values():
        plain = {name: each for name, each in profile.arguments.items() if each.type not in ("list", "object")}
        old = profile.model_copy(update={"arguments": plain})
        assert 1 == EngineProfileSet(profile=old).v == EngineProfileRequested(profile=old).v
        new = profile.model_copy(update={"arguments": {**plain, "x": Argument(type="object")}})
        assert 2 == EngineProfileSet(profile=new).v == EngineProfileRequested(profile=new).v


def test_the_next_version_is_unknown_to_this_reader_and_no_garbage() -> None:
    for fact in facts_of(spec()):
        (entry,) = (each for each in CATALOGUE if each.fact is type(fact))
        body = json.loads(body_of(fact))
        body[0]["v"] = entry.version + 1
        (found,) = decode_facts(fact.kind, json.dumps(body).encode())
        assert isinstance(found, Unknown)
        assert found.v == entry.version + 1


def test_the_catalogue_names_the_newest_version_that_each_fact_may_have() -> None:
    for entry in CATALOGUE:
        assert (entry.fact.newest if issubclass(entry.fact, Versioned) else 1) == entry.version


@pytest.mark.parametrize(
    "source",
    [
        HfSource(repository="a/b"),
        HttpsSource(url="https://h/m.gguf"),
        S3Source(bucket="abc", key="m.gguf"),
        UploadSource(name="m.gguf"),
    ],
)
def test_a_source_that_is_fetched_takes_version_4_with_its_files(source: FetchedSource) -> None:
    files = (SourceFile(name="m.gguf", size=1),)
    fetched = spec(a=[1]).model_copy(update={"source": source, "files": files})
    for fact in facts_of(fetched):
        assert 4 == fact.v
        assert (fact,) == decode_facts(fact.kind, body_of(fact))
        assert "models that workers fetch wait until the whole mesh reads them" in (unwritable(fact, {}) or "")
        name = f"{fact.kind}.{fact.type}"
        assert unwritable(fact, {name: 3}) is not None
        assert unwritable(fact, {name: 4}) is None


def test_adapters_take_version_3_and_a_fact_of_version_2_has_no_third() -> None:
    adapted = spec(a=[1]).model_copy(update={"adapters": (LoraAdapter(name="style", path="/l.gguf", scale=0.5),)})
    for fact in facts_of(adapted):
        assert 3 == fact.v
        assert (fact,) == decode_facts(fact.kind, body_of(fact))
        assert "LoRA adapters wait until the whole mesh reads them" in (unwritable(fact, {}) or "")
        assert unwritable(fact, {f"{fact.kind}.{fact.type}": 3}) is None
    with pytest.raises(ValidationError, match="version 3 of engine_profile_set is newer than 2"):
        EngineProfileSet(profile=BUILTIN["vllm"], v=3)


def test_replicas_with_other_adapters_answer_otherwise_and_a_name_changes_nothing() -> None:
    one, other = LoraAdapter(name="a", path="/l.gguf"), LoraAdapter(name="b", path="/l.gguf")
    digests = [
        revision_digest(spec().model_copy(update={"adapters": adapters}))
        for adapters in ((), (one,), (other,), (one.model_copy(update={"scale": 0.5}),))
    ]
    assert digests[1] == digests[2]
    assert 3 == len(set(digests))
    assert revision_digest(spec()) == digests[0]


@pytest.mark.parametrize(
    "value",
    [
        list(range(MOST_VALUES + 1)),
        {"x": {str(each): each for each in range(MOST_VALUES)}},
        [float("nan")],
        {"a": [float("inf")]},
        None,
    ],
)
def test_an_argument_out_of_bounds_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        spec(a=value)


def test_an_argument_that_is_too_deep_is_refused_and_one_at_the_bound_is_taken() -> None:
    value: list[Any] = []
    for _ in range(MOST_DEPTH - 1):
        value = [value]
    assert value == spec(a=value).engine_args["a"]
    with pytest.raises(ValidationError, match="at most 8 deep"):
        spec(a=[value])


RAISED = st.builds(FormatRaised, fact=st.sampled_from([*formats.READS, "node.other"]), version=st.integers(1, 5))


@given(st.lists(RAISED))
def test_formats_are_raised_to_the_highest_in_any_order_and_never_taken_back(raised: list[FormatRaised]) -> None:
    found: Any = {}
    for fact in raised:
        before, found = found, formats.after(found, fact)
        assert all(found[name] >= version for name, version in before.items())
    assert found == {each.fact: max(f.version for f in raised if f.fact == each.fact) for each in raised}


@given(ARGUMENTS, st.lists(RAISED))
def test_what_may_not_be_written_yet_is_what_is_above_the_raised_version(
    given: dict[str, Any], raised: list[FormatRaised]
) -> None:
    found: Any = {}
    for fact in raised:
        found = formats.after(found, fact)
    for fact in facts_of(spec(**given)):
        may = fact.v == 1 or found.get(f"{fact.kind}.{fact.type}", 1) >= fact.v
        assert may == (formats.unwritable(fact, found) is None)


def test_a_connection_says_by_its_name_what_its_service_reads_and_an_earlier_one_nothing() -> None:
    for service in SERVICES:
        assert (service, formats.FORMATS) == formats.reader(formats.connection_name(service), SERVICES)
        assert (service, 0) == formats.reader(service, SERVICES)
    for other in ("story", "worker n-1", "registry, system account", "", "gateway and more"):
        assert formats.reader(other, SERVICES) is None


def test_a_layout_takes_version_5() -> None:
    fixed = spec().model_copy(update={"layout": Layout(tensor_parallel=2)})
    for fact in facts_of(fixed):
        assert 5 == fact.v
        assert (fact,) == decode_facts(fact.kind, body_of(fact))
        assert "a layout over devices" in (unwritable(fact, {f"{fact.kind}.{fact.type}": 4}) or "")
    assert "layout" not in spec().model_dump()
