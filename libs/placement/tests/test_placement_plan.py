"""Plans: what a file says becomes a fleet, and each replica has a place on it or a reason why not."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from weft_contracts.facts.values import Weights
from weft_placement.plan import Plan, PlanFault, plan_of, planned
from weft_placement.plan.results import Planned

GIB = 1 << 30
CARDS = {"vram": 24 * GIB}


def no_files(path: str) -> Weights:
    raise ValueError(f"{path} does not exist")


def planned_of(policy: str | None = None, **document: Any) -> Plan:
    return planned(plan_of(document, no_files), policy)


def node(id: str, *gpus: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": id, "gpus": list(gpus), **more}


def model(name: str, vram: object = GIB, **more: Any) -> dict[str, Any]:
    return {"name": name, "claim": {"vram": vram}, **more}


def places(plan: Plan) -> list[tuple[str, int, str, list[str]]]:
    return [(each.model, each.replica, each.rung, [m.node for m in each.members]) for each in plan.placements]


def test_replicas_are_placed_in_the_files_order_beside_those_before_them() -> None:
    found = planned_of(
        nodes=[node("a", CARDS), node("b", CARDS)],
        models=[model("large", 20 * GIB, replicas=2), model("small", 10 * GIB), model("tiny", 3 * GIB)],
    )
    assert [("large", 0, ["a"]), ("large", 1, ["b"]), ("tiny", 0, ["a"])] == [
        (name, number, nodes) for name, number, _, nodes in places(found)
    ]
    (refused,) = found.refused
    assert ("small", 0, 10 * GIB, 8 * GIB) == (refused.model, refused.replica, refused.need, refused.available)
    assert "6.00 GiB short on gpu 0" in refused.nodes["a"]


def test_what_runs_holds_its_claim_and_keeps_others_of_its_model_away() -> None:
    running = [{"model": "m", "node": "a", "claim": {"gpus": {"0": "4GiB"}}, "idle_s": 3}]
    free = planned_of(nodes=[node("a", CARDS), node("b", CARDS)], models=[model("m")])
    assert [["a"]] == [nodes for *_, nodes in places(free)]
    beside = planned_of(nodes=[node("a", CARDS), node("b", CARDS)], running=running, models=[model("m")])
    assert [["b"]] == [nodes for *_, nodes in places(beside)]
    full = planned_of(nodes=[node("a", CARDS)], running=running, models=[model("m", 21 * GIB)])
    assert 20 * GIB == full.refused[0].available


def test_accelerators_are_counted_as_their_vendors_do() -> None:
    found = planned_of(
        nodes=[node("a", {"index": 3, **CARDS}, {"index": 7, "vram": 4 * GIB}, ram=64 * GIB)],
        models=[model("m", 20 * GIB), model("chosen", 2 * GIB, gpus=["a:7"])],
    )
    assert [{3: 20 * GIB}, {7: 2 * GIB}] == [dict(each.members[0].gpus) for each in found.placements]


def test_a_need_of_both_kinds_is_claimed_of_both() -> None:
    both = {"name": "m", "claim": {"vram": "2GiB", "ram": "3GiB"}}
    found = planned_of(nodes=[node("a", CARDS, ram=64 * GIB)], models=[both])
    (member,) = found.placements[0].members
    assert (3 * GIB, {0: 2 * GIB}) == (member.ram, dict(member.gpus))
    nowhere = planned_of(nodes=[node("a", CARDS, ram=2 * GIB)], models=[both])
    assert () == nowhere.placements


def test_reserved_memory_pressure_and_disk_are_not_free() -> None:
    ram = {"name": "m", "claim": {"ram": 20 * GIB}}
    assert planned_of(nodes=[node("a", ram=32 * GIB)], models=[ram]).placements
    assert planned_of(nodes=[node("a", ram=32 * GIB, reserved=16 * GIB)], models=[ram]).refused
    pressed = planned_of(nodes=[node("a", {**CARDS, "pressure": "5GiB"})], models=[model("m", 20 * GIB)])
    assert 19 * GIB == pressed.refused[0].available
    weights = {"name": "m", "weights": "8GiB", "kv_bytes": 1, "heads": 1}
    narrow = planned_of(nodes=[node("a", CARDS, disk="8GiB")], models=[weights])
    assert "too little disk" in narrow.refused[0].nodes["a"]
    ready = {"m": ["a"]}
    assert planned_of(nodes=[node("a", CARDS, disk="8GiB")], models=[weights], ready_files=ready).placements


def test_labels_choose_nodes() -> None:
    nodes = [node("a", CARDS, labels={"pool": "red"}), node("b", CARDS, labels={"pool": "blue"})]
    found = planned_of(nodes=nodes, models=[model("m", selector={"pool": "blue"}), model("n", selector={"!pool": ""})])
    assert [("m", ["b"])] == [(name, members) for name, _, _, members in places(found)]
    assert {"a": "bears the label pool; that is red", "b": "bears the label pool; that is blue"} == found.refused[
        0
    ].nodes
    assert "every node bears the label pool" == found.refused[0].rungs["one-device"]


def test_one_policy_may_be_laid_over_all_models() -> None:
    nodes = [node("a", CARDS), node("b", CARDS)]
    models = [model("m", replicas=2, policy="spread")]
    assert [["a"], ["b"]] == [members for *_, members in places(planned_of(nodes=nodes, models=models))]
    packed = planned_of("binpack", nodes=nodes, models=models)
    assert [["a"], ["a"]] == [members for *_, members in places(packed)]
    assert {"binpack"} == {each.policy for each in packed.placements}


def test_part_of_a_model_lies_on_an_accelerator_unless_that_is_ruled_out() -> None:
    gguf = {"name": "m", "engine": "llama.cpp", "weights": "30GiB", "layers": 30, "kv_bytes": 30_000}
    nodes = [node("a", CARDS, ram=64 * GIB)]
    (placed,) = planned_of(nodes=nodes, models=[gguf]).placements
    assert "partial-offload" == placed.rung
    assert placed.layers is not None
    assert 15 < placed.layers < 24
    assert placed.members[0].ram
    assert placed.members[0].gpus[0] <= 24 * GIB
    assert any(line.startswith("one device: the best node has no device with ") for line in placed.passed_over)
    (refused,) = planned_of(nodes=nodes, models=[{**gguf, "cpu_offload": False}]).refused
    assert "must lie on accelerators" == refused.rungs["processor"]


def test_whether_a_model_may_lie_on_several_nodes_is_its_engines_affair_unless_the_file_says() -> None:
    nodes = [node("a", CARDS), node("b", CARDS)]
    split = model("m", 40 * GIB, engine="vllm", heads=8)
    assert "vllm runs on one node" == planned_of(nodes=nodes, models=[split]).refused[0].rungs["several-nodes"]
    assert [["a", "b"]] == [m for *_, m in places(planned_of(nodes=nodes, models=[{**split, "distributed": True}]))]
    gguf = {**split, "engine": "llama.cpp", "distributed": True}
    (refused,) = planned_of(nodes=nodes, models=[gguf]).refused
    assert "can't split it: llama.cpp runs on one device" == refused.rungs["several-nodes"]
    by_hand = {**split, "gpus": ["a:0", "b:0"], "gpus_per_replica": 2}
    assert [["a", "b"]] == [members for *_, members in places(planned_of(nodes=nodes, models=[by_hand]))]
    assert planned_of(nodes=nodes, models=[{**by_hand, "distributed": False}]).refused


def test_an_engine_with_a_build_of_its_own_for_accelerators_has_none_for_that_nodes_processor() -> None:
    vllm = {"name": "m", "engine": "vllm", "weights": "30GiB", "kv_bytes": 1, "heads": 7}
    assert planned_of(nodes=[node("a", CARDS, ram=256 * GIB)], models=[vllm]).refused
    assert ["processor"] == [
        rung for _, _, rung, _ in places(planned_of(nodes=[node("a", ram=256 * GIB)], models=[vllm]))
    ]


def test_a_number_of_devices_beside_a_fixed_layout_is_a_wish() -> None:
    eight = [node("a", *[CARDS] * 8)]
    wished = model("m", 40 * GIB, heads=28, tensor_parallel=4, gpus_per_replica=8)
    (placed,) = planned_of(nodes=eight, models=[wished]).placements
    assert 4 == len(placed.members[0].gpus)
    assert "8 devices were asked for: 4 of them hold it" == placed.passed_over[-1]


# what is wrong with a file

NODES = [node("a", CARDS, CARDS), node("b", CARDS)]


FAULTS: list[tuple[Any, str]] = [
    ([], "the file: want an object with policies, nodes, running, ready_files, models"),
    ({"node": []}, "node: there is no such field; there are policies, nodes, running, ready_files, models"),
    ({"nodes": 3}, "nodes: want a list"),
    ({"nodes": [{"id": "a", "gpus": [{"vram": "12GBs"}]}]}, "nodes[0].gpus[0].vram: want a size: bytes, or "),
    ({"nodes": [{"id": "a", "gpus": [{}]}]}, "nodes[0].gpus[0].vram: want a size"),
    ({"nodes": [{"id": "a", "gpus": [{"vendor": "cpu", "vram": 1}]}]}, "nodes[0].gpus[0].vendor: want one of nvid"),
    ({"nodes": [{"id": "a"}, {"id": "a"}]}, "nodes[1].id: a is the id of another node, too"),
    ({"nodes": [{"ram": 1}]}, "nodes[0].id: want a text"),
    ({"nodes": [{"id": "a", "gpus": [CARDS, {**CARDS, "index": 0}]}]}, "nodes[0].gpus[1].index: 0 is the index of"),
    ({"nodes": [{"id": "a", "unified_memory": True}]}, "nodes[0].ram: want the machine's memory"),
    ({"nodes": [{"id": "a", "labels": {"x": True}}]}, "nodes[0].labels.x: want a text"),
    ({"models": [model("m"), model("m")]}, "models[1].name: m is the name of another model, too"),
    ({"models": [model("m"), model("n"), model("o", heads=0)]}, "models[2].heads: want a whole number above 0"),
    ({"models": [model("m", heads="8")]}, "models[0].heads: want a whole number above 0"),
    ({"models": [model("m", heads=True)]}, "models[0].heads: want a whole number above 0"),
    ({"models": [model("m", replicas=-1)]}, "models[0].replicas: want a whole number from 0 on"),
    ({"models": [model("m", engine="none")]}, "models[0].engine: want one of llama.cpp, vllm, simulated, openai"),
    ({"models": [model("m", policy="best")]}, "models[0].policy: want one of balanced, binpack, spread"),
    ({"models": [model("m", gpu_memory_utilization=1.2)]}, "models[0].gpu_memory_utilization: want a share above"),
    ({"models": [model("m", distributed="yes")]}, "models[0].distributed: want true or false"),
    ({"models": [{"name": "m"}]}, "models[0].weights: want a size"),
    ({"models": [{"name": "m", "weights": 1}]}, "models[0].kv_bytes: want bytes of cache a token; or layers"),
    ({"models": [{"name": "m", "engine": "simulated"}]}, "models[0].claim: want {ram, vram}: simulated has no"),
    ({"models": [{"name": "m", "claim": {}}]}, "models[0].claim: want what a replica needs"),
    ({"models": [{"name": "m", "claim": {"vram": -1}}]}, "models[0].claim.vram: want a size"),
    ({"models": [{"name": "m", "path": "/x.gguf"}]}, "models[0].path: /x.gguf does not exist"),
    ({"models": [{"name": "m", "path": "/x", "heads": 3}]}, "models[0].heads: is what the files at its path tell"),
    (
        {"models": [model("m", layers=2, kv_heads=2, head_dim=2, kv_bytes=9)]},
        "models[0].kv_bytes: with head_dim it is the bytes of one cached value: want 1 to 8",
    ),
    ({"nodes": NODES, "models": [model("m", gpus=["a"])]}, 'models[0].gpus[0]: want "node:index"'),
    ({"nodes": NODES, "models": [model("m", gpus=["c:0"])]}, "models[0].gpus[0]: there is no node c"),
    ({"nodes": NODES, "models": [model("m", gpus=["a:0", "a:2"])]}, "models[0].gpus[1]: a has no gpu 2"),
    ({"nodes": NODES, "models": [model("m", gpus=[])]}, "models[0].gpus: is empty"),
    (
        {"nodes": NODES, "models": [model("m", gpus=["a:0"], gpus_per_replica=2)]},
        "models[0].gpus: names 1 devices, and a replica is to have 2",
    ),
    (
        {"nodes": NODES, "models": [model("m", gpus_per_replica=3, tensor_parallel=4)]},
        "models[0].gpus_per_replica: is 3, and its parallelism needs 4: leave one out",
    ),
    ({"nodes": NODES, "models": [model("m", preferred_nodes=["c"])]}, "models[0].preferred_nodes[0]: there is no"),
    ({"running": [{"model": "m", "node": "a", "claim": {"ram": 1}}]}, "running[0].node: there is no node a"),
    (
        {"nodes": NODES, "running": [{"model": "m", "node": "a", "claim": {"gpus": {"2": 1}}}]},
        "running[0].claim.gpus.2: a has no gpu 2",
    ),
    (
        {"nodes": NODES, "running": [{"model": "m", "node": "a", "claim": {"ram": 1}}]},
        "running[0].claim.ram: nothing says what memory a has",
    ),
    ({"nodes": NODES, "running": [{"model": "m", "node": "a"}]}, "running[0].claim: want what it holds"),
    (
        {"nodes": NODES, "running": [{"model": "m", "node": "a", "claim": {"gpus": {"0": 1}}, "idle_s": "1"}]},
        "running[0].idle_s: want a number from 0 on, of at most 1000000000",
    ),
    ({"ready_files": {"m": ["a"]}}, "ready_files.m: there is no model m among the models"),
    ({"models": [model("m")], "ready_files": {"m": ["a"]}}, "ready_files.m[0]: there is no node a"),
]


@pytest.mark.parametrize(("document", "expected"), FAULTS)
def test_a_fault_is_told_with_its_path_and_what_would_be_right(document: Any, expected: str) -> None:
    with pytest.raises(PlanFault) as fault:
        planned(plan_of(document, no_files))
    assert str(fault.value).startswith(expected)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (5, 5),
        ("5", 5),
        ("15.2GiB", 16320875724),
        ("12GB", 12 * 10**9),
        ("1 TiB", 1 << 40),
        ("1.5kB", 1500),
        (1e9, 10**9),
    ],
)
def test_sizes_are_bytes_or_a_number_with_a_unit(written: object, expected: int) -> None:
    if written == "5":
        with pytest.raises(PlanFault):
            plan_of({"nodes": [{"id": "a", "ram": written}]}, no_files)
        return
    assert expected == plan_of({"nodes": [{"id": "a", "ram": written}]}, no_files).nodes[0].ram


@pytest.mark.parametrize("written", ["", "GB", "-1GB", "1.2.3GB", "1e3GB", "5 gib", True, 0.5, -1, 1 << 54, [], {}])
def test_no_other_size_is_taken(written: object) -> None:
    with pytest.raises(PlanFault, match=r"nodes\[0\]\.ram: want a size"):
        plan_of({"nodes": [{"id": "a", "ram": written}]}, no_files)


# whatever the fleet

SIZES = st.sampled_from([8 * GIB, 16 * GIB, 24 * GIB, 32 * GIB])
GPUS = st.fixed_dictionaries({"vram": SIZES, "pressure": st.sampled_from([0, 0, 3 * GIB])})
MACHINES = st.lists(
    st.tuples(
        st.lists(GPUS, max_size=4),
        st.sampled_from(["nvidia", "nvidia", "amd"]),
        st.sampled_from([0, 16 * GIB, 64 * GIB]),
        st.sampled_from([False, False, True]),
    ),
    min_size=1,
    max_size=5,
)
FIXED: list[dict[str, Any]] = [
    *({}, {}, {}, {"tensor_parallel": 2}, {"tensor_parallel": 2, "pipeline_parallel": 2}),
    *({"pipeline_parallel": 2}, {"gpus_per_replica": 3}, {"cpu_offload": False}, {"gpu_memory_utilization": 0.9}),
]


def _fixed(told: dict[str, Any], fixed: dict[str, Any]) -> dict[str, Any]:
    return {**told, **fixed}


MODELS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(
        _fixed,
        st.fixed_dictionaries(
            {
                "engine": st.sampled_from(["vllm", "vllm", "llama.cpp", "llama.cpp", "simulated"]),
                "replicas": st.integers(1, 3),
                "policy": st.sampled_from(["balanced", "binpack", "spread"]),
                "heads": st.sampled_from([1, 8, 12, 32]),
                "layers": st.sampled_from([3, 8, 32]),
                "distributed": st.sampled_from([True, True, False]),
            }
        ),
        st.sampled_from(FIXED),
    ),
    min_size=1,
    max_size=4,
)
NEEDS = st.lists(
    st.tuples(
        st.sampled_from(["vram", "weights", "weights", "ram"]),
        st.sampled_from([4, 10, 20, 40, 60, 90]).map(GIB.__mul__),
    ),
    min_size=4,
    max_size=4,
)


def document(
    machines: list[tuple[list[dict[str, Any]], str, int, bool]],
    models: list[dict[str, Any]],
    needs: list[tuple[str, int]],
    hand: bool,
) -> dict[str, Any]:
    nodes = [
        node(
            f"w{place}",
            *({**gpu, "vendor": "apple" if unified and ram else vendor} for gpu in gpus),
            ram=ram,
            unified_memory=bool(unified and ram),
        )
        for place, (gpus, vendor, ram, unified) in enumerate(machines)
    ]
    told: list[dict[str, Any]] = []
    for place, ((kind, size), one) in enumerate(zip(needs, models, strict=False)):
        need = (
            {"weights": size, "kv_bytes": 1000}
            if kind == "weights" and one["engine"] != "simulated"
            else {"claim": {"ram" if kind == "ram" else "vram": size}}
        )
        told.append({"name": f"m{place}", **one, **need})
    cards = [f"{each['id']}:{index}" for each in nodes for index in range(len(each["gpus"]))]
    if hand and len(cards) > 1:
        fixed = {"tensor_parallel", "pipeline_parallel", "gpus_per_replica"}
        told[0] = {key: value for key, value in told[0].items() if key not in fixed}
        told[0] |= {"gpus": cards[::2] + cards[1:2], "gpus_per_replica": 2}
    return {"nodes": nodes, "models": told}


@settings(max_examples=60, deadline=None)
@given(machines=MACHINES, models=MODELS, needs=NEEDS, hand=st.booleans())
def test_no_device_is_overcommitted_a_group_is_whole_and_of_one_vendor_and_the_same_comes_out_twice(
    machines: list[tuple[list[dict[str, Any]], str, int, bool]],
    models: list[dict[str, Any]],
    needs: list[tuple[str, int]],
    hand: bool,
) -> None:
    file = document(machines, models, needs, hand)
    found = planned_of(**file)
    assert found == planned_of(**file)
    assert sum(one["replicas"] for one in file["models"]) == len(found.placements) + len(found.refused)
    nodes = {each["id"]: each for each in file["nodes"]}
    held: Counter[tuple[str, int]] = Counter()
    shared: Counter[str] = Counter()
    for placed in found.placements:
        event(placed.rung)
        _is_whole(placed, next(one for one in file["models"] if one["name"] == placed.model), nodes)
        for member in placed.members:
            held.update({(member.node, index): size for index, size in member.gpus.items()})
            held[member.node, -1] += member.ram
            shared[member.node] += member.ram + sum(member.gpus.values())
    for (id, index), size in held.items():
        if index >= 0:
            gpu = nodes[id]["gpus"][index]
            assert size <= gpu["vram"] - gpu["pressure"]
        else:
            assert size <= nodes[id]["ram"]
    for id, size in shared.items():
        if nodes[id]["unified_memory"]:
            assert size <= nodes[id]["ram"]


def _is_whole(placed: Planned, told: dict[str, Any], nodes: dict[str, Any]) -> None:
    """A placement has the shape of its rung, and of what was fixed."""
    counts = [len(member.gpus) for member in placed.members]
    vendors = {nodes[m.node]["gpus"][index]["vendor"] for m in placed.members for index in m.gpus}
    assert len(vendors) <= 1
    assert len({member.node for member in placed.members}) == len(placed.members)
    by_hand = "gpus" in told
    match placed.rung:
        case "one-device" | "partial-offload":
            assert counts == [1]
        case "several-devices":
            assert len(counts) == 1
            assert counts[0] > 1
        case "several-nodes":
            assert len(counts) > 1
            assert counts == sorted(counts, reverse=True)
            assert by_hand or told["distributed"] is True
            assert by_hand or len(set(counts)) == 1
        case rung:
            assert rung == "processor"
            assert counts == [0]
    if by_hand:
        assert sum(counts) == 2
        chosen = set(told["gpus"])
        assert all(f"{member.node}:{index}" in chosen for member in placed.members for index in member.gpus)
    elif "gpus_per_replica" in told:
        assert sum(counts) <= 3
    elif "tensor_parallel" in told:
        tensor, stages = told["tensor_parallel"], told.get("pipeline_parallel", len(counts))
        assert tensor * stages == sum(counts)
    if not by_hand and placed.rung in ("several-devices", "several-nodes"):
        stages = len(counts) if placed.rung == "several-nodes" else told.get("pipeline_parallel", 1)
        tensor = sum(counts) // stages
        assert told["heads"] % tensor == 0


def test_a_plans_devices_tell_what_they_can_and_its_models_what_they_ask() -> None:
    old, new = {**CARDS, "capability": "8.6"}, {**CARDS, "capability": "9.0"}
    found = planned_of(
        nodes=[node("a", old), node("b", new)],
        models=[model("m", capability=["8.9"]), model("n", capability=["10.0"])],
    )
    assert [("m", 0, "one-device", ["b"])] == places(found)
    reason = "has no device of compute capability 10.0 or higher"
    assert {"a": f"{reason}; it has nvidia (8.6)", "b": f"{reason}; it has nvidia (9.0)"} == found.refused[0].nodes


def test_a_plans_models_of_one_anti_affinity_share_no_node_and_a_pool_takes_its_own() -> None:
    found = planned_of(
        nodes=[node("a", CARDS), node("b", CARDS), node("c", CARDS, labels={"pool": "red"})],
        models=[model(name, anti_affinity="front") for name in ("m", "n", "o")],
    )
    assert {("m", "a"), ("n", "b")} == {(name, nodes[0]) for name, _, _, nodes in places(found)}
    assert "is kept for models whose selector names its pool; that is red" == found.refused[0].nodes["c"]
    assert "runs a replica of the anti-affinity front already; m-000000-1" == found.refused[0].nodes["a"]


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("capability", ["9"], "models[0].capability[0]: want a compute capability such as 8.9"),
        ("capability", ["8.9"] * 9, "models[0].capability: has 9 items, 8 are allowed"),
        ("anti_affinity", "a b", "models[0].anti_affinity: want at most 63 letters"),
        ("anti_affinity", "a" * 64, "models[0].anti_affinity: want at most 63 letters"),
    ],
)
def test_what_a_plans_model_asks_of_places_is_told_with_its_path(field: str, value: object, wanted: str) -> None:
    with pytest.raises(PlanFault) as fault:
        planned_of(nodes=[node("a", CARDS)], models=[model("m", **{field: value})])
    assert str(fault.value).startswith(wanted)


def test_what_a_plans_device_can_do_is_told_with_its_path() -> None:
    with pytest.raises(PlanFault) as fault:
        planned_of(nodes=[node("a", {**CARDS, "capability": "sm_90"})], models=[])
    assert str(fault.value).startswith("nodes[0].gpus[0].capability: want a compute capability such as 8.9")


def test_a_files_own_policy_places_as_one_of_the_mesh_would() -> None:
    nodes = [node("a", CARDS), node("b", CARDS)]
    fills = {"name": "fills", "apart": "no", "weights": {"binpack": 1}}
    placed = planned_of(nodes=nodes, policies=[fills], models=[model("m", replicas=2, policy="fills")])
    assert [["a"], ["a"]] == [nodes for *_, nodes in places(placed)]
    assert ["fills", "fills"] == [each.policy for each in placed.placements]
    apart = planned_of(nodes=nodes, policies=[fills], models=[model("m", replicas=2)])
    assert [["a"], ["b"]] == [nodes for *_, nodes in places(apart)]


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ([{"name": "x"}], "policies[0]: weights: is missing"),
        ([{"name": "x", "weights": {"idle": 1}, "depth": 1}], "policies[0]: depth: is no field of a policy"),
        ([{"name": "spread", "weights": {"idle": 1}}], "policies[0].name: spread is the name of another policy, too"),
        ([{"name": "x", "weights": {"idle": 1}}] * 2, "policies[1].name: x is the name of another policy, too"),
        ("x", "policies: want a list"),
    ],
)
def test_what_is_wrong_with_a_policy_is_told_with_its_place(policies: Any, expected: str) -> None:
    with pytest.raises(PlanFault) as fault:
        plan_of({"policies": policies}, no_files)
    assert str(fault.value).startswith(expected)


def test_a_model_on_all_nodes_has_one_on_each_that_matches_and_none_is_refused_for_the_others() -> None:
    nodes = [node("a", CARDS, labels={"in": "1"}), node("b", CARDS), node("c", CARDS, labels={"in": "1"})]
    found = planned_of(nodes=nodes, models=[model("m", replicas="all", selector={"in": "1"})])
    assert ([["a"], ["c"]], ()) == ([nodes for *_, nodes in places(found)], found.refused)
    none = planned_of(nodes=nodes, models=[model("m", replicas="all", selector={"in": "2"})])
    assert ((), 1) == (none.placements, len(none.refused))


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        ({"replicas": 0}, True),
        ({"replicas": 0, "priority": 2}, False),
        ({"replicas": 1}, False),
    ],
)
def test_what_runs_of_a_model_of_which_the_file_wants_no_more_may_end_unless_its_priority_is_higher(
    said: dict[str, Any], ends: bool
) -> None:
    running = [{"model": "old", "node": "a", "claim": {"gpus": {"0": "20GiB"}}, "idle_s": 3600}]
    old, new = model("old", claim={"vram": "20GiB"}, **said), model("new", claim={"vram": "20GiB"}, priority=1)
    found = planned_of(nodes=[node("a", CARDS)], running=running, models=[new, old])
    assert ends == ("new" in {each.model for each in found.placements})
    assert ([("old", 0)] if ends else []) == [
        (end.model, end.replica) for each in found.placements for end in each.evicts
    ]


@pytest.mark.parametrize(
    ("priority", "wanted"),
    [
        (5000, "want a whole number of at most 1000"),
        (-5000, "want a whole number from -1000 on"),
        ("high", "want a whole number from"),
    ],
)
def test_a_priority_that_no_model_may_have_is_told_with_its_place(priority: object, wanted: str) -> None:
    with pytest.raises(PlanFault) as fault:
        planned_of(nodes=[node("a", CARDS)], models=[model("m", priority=priority)])
    assert str(fault.value).startswith(f"models[0].priority: {wanted}")
    planned_of(nodes=[node("a", CARDS)], models=[model("m", priority=-1000)])
