"""Draft models in placement: what they take is claimed beside the model, and nodes that lack one say so."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.facts.layers import LayerRun
from weft_contracts.facts.machine import FileFound, FileMissing, Reported
from weft_contracts.facts.shape import Cache, ModelShape
from weft_contracts.facts.source import HfSource, PathSource, SourceFile
from weft_contracts.facts.values import Backend, Device, Hardware, ModelSpec, Weights
from weft_contracts.ids import InspectionId, ModelId, NodeId, replica_id
from weft_contracts.subjects import machine
from weft_fleet import NodeAssignments
from weft_placement import ClaimUnknown, NoPlace, Placement, Policy, decide_placement, dry_run
from weft_placement.claim import GIB, MIB, Need, need_of, offloads_of
from weft_placement.demand import demand_of
from weft_placement.scorers.files_there import files_there
from weft_testing.fleet_log import FleetLog

LLAMA = BUILTIN["llama.cpp"]
KIB = 1 << 10
KEY = "path:/d.gguf"
SHAPE = ModelShape(whole=Cache(keys=KIB, values=KIB), width=256, inner=1024)
WEIGHTS = Weights(
    format="gguf",
    weight_bytes=1000 * MIB,
    kv_bytes_per_token=2 * KIB,
    layers=10,
    layer_runs=(LayerRun(10, 90 * MIB, 205),),
    input_bytes=50 * MIB,
    output_bytes=50 * MIB,
    shape=SHAPE,
)
DRAFT = Weights(
    format="gguf", weight_bytes=100 * MIB, kv_bytes_per_token=KIB, layers=2, fingerprint="d" * 16, shape=SHAPE
)


def spec(draft: Weights | None = DRAFT, **arguments: ArgumentValue) -> ModelSpec:
    """With a draft model; `draft`: what the nodes found of it."""
    return ModelSpec(
        source=PathSource(path="/m"),
        engine="llama.cpp",
        weights=WEIGHTS,
        draft=draft,
        engine_args={"draft_model": "/d.gguf", **arguments},
    )


def plain(**arguments: ArgumentValue) -> ModelSpec:
    """The same without."""
    return spec(None).model_copy(update={"engine_args": arguments})


def need(spec: ModelSpec) -> Need:
    return need_of(spec, LLAMA)


def test_a_draft_model_is_claimed_with_its_weights_and_its_own_cache_for_the_same_requests() -> None:
    more = need(spec()).on_each("cpu", 1) - need(plain()).on_each("cpu", 1)
    assert 105 * MIB + 2 * KIB * 1024 * 8 == more


def test_its_step_counts_where_both_steps_are_more_than_the_overhead_has_for_one() -> None:
    wide = SHAPE.model_copy(update={"width": 16_384})
    draft = DRAFT.model_copy(update={"shape": wide})
    step = 512 * (4 * (5 * 16_384 + 3 * 1024) + 2 * 1024)
    model = 512 * (4 * (5 * 256 + 3 * 1024) + 2 * 1024)
    assert step + model - 64 * MIB == need(spec(draft)).cpu_overhead - need(plain()).cpu_overhead


def test_the_caches_type_is_the_models_alone() -> None:
    typed: dict[str, ArgumentValue] = {"cache_type_k": "q4_0", "cache_type_v": "q4_0"}
    assert need(spec()).draft == need(spec(None, **typed).model_copy(update={"draft": DRAFT})).draft
    assert need(spec(DRAFT, **typed)).kv < need(spec()).kv


def test_beside_a_part_of_the_layers_the_draft_model_lies_on_the_accelerator_whole() -> None:
    with_draft, without = need(spec(gpu_layers=5)), need(plain(gpu_layers=5))
    own = with_draft.draft + (96 << 20)  # a context of its own
    assert own == with_draft.on_each("nvidia", 1) - without.on_each("nvidia", 1)
    assert with_draft.beside(1) == without.beside(1)
    both = zip(offloads_of(spec(), LLAMA), offloads_of(plain(), LLAMA), strict=True)
    assert all(a.on_each("nvidia", 1) - b.on_each("nvidia", 1) == own for a, b in both)


@given(st.integers(1, 1 << 34), st.integers(1, 1 << 20), st.integers(1, 1 << 17), st.integers(1, 64))
def test_a_draft_model_never_makes_a_claim_smaller(size: int, token: int, context: int, requests: int) -> None:
    draft = Weights(format="gguf", weight_bytes=size, kv_bytes_per_token=token)
    sized = {"context_tokens": context, "concurrency": requests}
    more = need(spec(draft).model_copy(update=sized)).on_each("cpu", 1)
    assert size + token * context * requests <= more - need(plain().model_copy(update=sized)).on_each("cpu", 1)


@pytest.mark.parametrize(
    ("draft", "why"),
    [
        (None, "no node's inspection has read /d.gguf"),
        (Weights(format="none"), "no node's inspection has read the file's header"),
        (Weights(format="gguf", kv_bytes_per_token=1), "the file's header names no weights"),
        (Weights(format="gguf", weight_bytes=1), "the file's header does not give the KV cache's size"),
    ],
)
def test_a_draft_model_that_nobody_could_read_is_an_error_and_never_a_small_number(
    draft: Weights | None, why: str
) -> None:
    with pytest.raises(ClaimUnknown, match=f"^engine_args.draft_model: its memory can't be computed: {why}"):
        need(spec(draft))


def test_an_engine_that_takes_no_draft_model_claims_none() -> None:
    given = spec().model_copy(update={"engine": "vllm"})
    assert need_of(given, BUILTIN["vllm"]) == need_of(given.model_copy(update={"engine_args": {}}), BUILTIN["vllm"])


def node(log: FleetLog, name: str, *found: FileFound | FileMissing) -> NodeId:
    id = log.node(name, GIB)
    device = Device(index=0, vendor="cpu", name="-", memory=8 * GIB)
    reported = Reported(
        hardware=Hardware(cpus=8, memory=8 * GIB, devices=(device,)),
        backends=(Backend(engine="llama.cpp", version="1", vendors=("cpu",), profile=LLAMA.digest),),
        builtins=(),
        agent_version="1",
        reads={"node.assigned": 4},
    )
    log.add(machine(id), reported, there("path:/m", WEIGHTS), *found)
    return id


def there(source: str, weights: Weights) -> FileFound:
    return FileFound(inspection=InspectionId("i-1"), source=source, size=1, weights=weights)


def decided(log: FleetLog, wanted: ModelSpec) -> Placement | NoPlace:
    model = log.model("m", wanted, replicas=1)
    return decide_placement(log.fleet, replica_id(model, 1), Policy(), 0.0, 1)


def test_a_node_takes_it_that_holds_the_same_draft_model_and_the_others_say_why_not() -> None:
    log = FleetLog()
    node(log, "unasked")
    node(log, "without", FileMissing(inspection=InspectionId("i-2"), source=KEY, reason="it does not exist"))
    node(log, "other", there(KEY, DRAFT.model_copy(update={"fingerprint": "0" * 16})))
    assert {
        f"has not answered yet whether it holds the draft model {KEY}": 1,
        f"cannot load the draft model {KEY}: it does not exist": 1,
        f"holds another draft model at {KEY}": 1,
    } == decided(log, spec()).receipt.refusals

    holder = node(log, "holder", there(KEY, DRAFT))

    taken = decided(log, spec())
    assert isinstance(taken, Placement)
    assert [holder] == [member.node for member in taken.members]
    assert need(spec()).on_each("cpu", 1) == taken.members[0].devices[0].bytes


def test_a_dry_run_counts_what_nodes_found_of_a_draft_model() -> None:
    log = FleetLog()
    node(log, "a", there(KEY, DRAFT))

    tried = dry_run(log.fleet, "m", spec(None))

    assert (True, DRAFT) == (tried.fits, tried.spec.draft)


@pytest.mark.parametrize(("model", "draft", "score"), [(1, 1, 1.0), (1, 0, 2 / 3), (0, 1, 1 / 3), (0, 0, 0.0)])
def test_the_draft_models_files_count_half_as_much_as_the_models(model: int, draft: int, score: float) -> None:
    log = FleetLog()
    fetched = spec().model_copy(
        update={"source": HfSource(repository="a/b"), "files": (SourceFile(name="m.gguf", size=1),)}
    )
    demand = demand_of(ModelId("m"), 1, fetched, Policy(), BUILTIN)
    id = node(log, "a", *((there(KEY, DRAFT),) if draft else ()))
    view = replace(log.fleet.nodes[id], fetched={demand.files: 1} if model else {})
    assert score == pytest.approx(files_there(view, NodeAssignments(), demand))
