"""What the admin API shows of nodes, models and replicas."""

from collections.abc import Mapping
from typing import Any

import pytest
from weft_contracts.budget import parse_budget
from weft_contracts.commit import Cause
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.layout import Layout
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.machine import FileFound, FileMissing, PressureChanged, Reported
from weft_contracts.facts.mesh import BrakeSet
from weft_contracts.facts.node import Capped, CutOff, Drained, Draining, Joined, Labelled, Rejected, Resumed
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.source import (
    BuiltinSource,
    HfSource,
    HttpsSource,
    PathSource,
    S3Source,
    SimulatedSource,
    Source,
    SourceFile,
    UploadSource,
)
from weft_contracts.facts.values import (
    Addresses,
    Backend,
    Caps,
    Device,
    DeviceClaim,
    Hardware,
    Member,
    MetadataFile,
    ModelSpec,
    Receipt,
    UnsizedDevice,
    Weights,
)
from weft_contracts.ids import CorrelationId, EventId, Incarnation, InspectionId, ModelId, NodeId, ReplicaId, TokenId
from weft_contracts.subjects import machine, node
from weft_fleet import Assignment, NodeAssignments, NodeView, ReplicaView, RunView
from weft_fleet.changed import changed
from weft_gateway.domain.model_state import Failing, ModelStanding
from weft_gateway.domain.shapes import (
    brake_shape,
    claim_shape,
    labels_shape,
    model_shape,
    node_detail,
    node_shape,
    openai_model_detail,
    replica_line,
    replica_shape,
)
from weft_gateway.domain.value_shapes import caps_shape, file_shape, files_shape, hardware_shape, spec_shape
from weft_testing.fleet_log import FleetLog

A, ID, ONE = NodeId("n-a"), ModelId("m-toy"), ReplicaId("m-toy-1")
HERE = Addresses(host="10.0.0.7", http_port=81)
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
CARD = Device(index=1, vendor="nvidia", name="H100", memory=100, uuid="GPU-1", driver="570", budget=90)


class Story:
    """A node whose worker has reported."""

    def __init__(self) -> None:
        self.log = FleetLog()
        joined = Joined(
            name="a", public_key="U", token=TokenId("t"), addresses=HERE, labels={"zone": "1"}, node_kind="worker"
        )
        hardware = Hardware(
            cpus=8,
            memory=1000,
            devices=(CARD,),
            disk_free=77,
            architecture="x86_64",
            unsized=(UnsizedDevice(vendor="amd", name="Radeon", driver="6.1"),),
            notes=("no nvidia-smi",),
        )
        self.log.add(node(A), joined)
        backends = (Backend(engine="vllm", version="0.9", vendors=("nvidia",)),)
        self.say(Reported(hardware=hardware, backends=backends, builtins=("tiny",), agent_version="1.2"))

    def say(self, *facts: Fact) -> None:
        for fact in facts:
            self.log.add(machine(A) if fact.kind == "machine" else node(A), fact)

    @property
    def view(self) -> NodeView:
        return self.log.fleet.nodes[A]


@pytest.fixture
def story() -> Story:
    return Story()


# nodes


def test_a_node_is_listed_with_what_it_is_and_has(story: Story) -> None:
    story.say(PressureChanged(device=1, bytes=7))
    shown = node_shape(story.view)
    assert {
        "id": "n-a",
        "name": "a",
        "kind": "worker",
        "state": "pending",
        "approved": False,
        "addresses": {"host": "10.0.0.7", "http_port": 81},
        "backends": [{"engine": "vllm", "version": "0.9", "vendors": ["nvidia"], "profile": ""}],
        "builtins": ["tiny"],
        "pressure": {"1": 7},
        "agent_version": "1.2",
        "cordoned": False,
        "drain": None,
        "caps": {"replicas_per_model": None, "vram_budget": None},
        "reason": None,
    } == {name: value for name, value in shown.items() if name not in ("labels", "hardware")}
    assert {"zone": "1", "node.name": "a", "engine.vllm": "true", "gpu.vendor": "nvidia"} == shown["labels"]


def test_a_nodes_hardware_is_shown_device_by_device(story: Story) -> None:
    shown = node_shape(story.view)["hardware"]
    assert story.view.hardware is not None
    assert hardware_shape(story.view.hardware) == shown
    assert shown is not None
    assert {
        "index": 1,
        "vendor": "nvidia",
        "name": "H100",
        "memory": 100,
        "uuid": "GPU-1",
        "number": CARD.number,
        "pci": CARD.pci,
        "driver": "570",
        "compute_capability": CARD.compute_capability,
        "unified": False,
        "budget": 90,
        "simulated": False,
    } == shown["devices"][0]
    assert [{"vendor": "amd", "name": "Radeon", "uuid": "", "driver": "6.1"}] == shown["unsized"]
    assert {
        "cpus": 8,
        "memory": 1000,
        "disk_free": 77,
        "architecture": "x86_64",
        "notes": ["no nvidia-smi"],
        "devices": shown["devices"],
        "unsized": shown["unsized"],
    } == shown


def test_a_node_that_has_not_reported_has_no_hardware_to_show() -> None:
    log = FleetLog()
    log.add(node(A), Joined(name="a", public_key="U", token=TokenId("t"), addresses=HERE))
    assert node_shape(log.fleet.nodes[A])["hardware"] is None


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ((CutOff(why="too much"),), "too much"),
        ((Rejected(why="not ours"),), "not ours"),
        ((Rejected(why="not ours"), CutOff(why="too much")), "too much"),
    ],
)
def test_a_node_that_is_out_says_why(story: Story, facts: tuple[Fact, ...], reason: str) -> None:
    story.say(*facts)
    assert reason == node_shape(story.view)["reason"]


def test_a_drain_is_shown_with_its_end_and_what_it_left_behind(story: Story) -> None:
    story.log.now = 1000.0
    story.say(Draining(why="admin", by="k-1", deadline_s=30))
    shown: dict[str, Any] = {
        "why": "admin",
        "by": "k-1",
        "deadline_s": 30.0,
        "ends_at": 1030.0,
        "leaves": None,
        "unfinished": {},
    }
    assert shown == node_shape(story.view)["drain"]
    story.say(Drained(unfinished={ONE: 2}))
    assert shown | {"unfinished": {"m-toy-1": 2}} == node_shape(story.view)["drain"]
    story.say(Resumed())
    assert node_shape(story.view)["drain"] is None


def held(*, over: bool = False) -> NodeAssignments:
    """One replica with 5 and 7 bytes, and, `over`, one that holds nothing any more."""
    claims = (DeviceClaim(index=0, bytes=5), DeviceClaim(index=1, bytes=7))
    cause = Cause(CorrelationId("c"))
    one = Assignment(ONE, ID, 1, "d", 1, 0, claims, 1, cause)
    found = NodeAssignments().put(one)
    return found.put(changed(one, replica=ReplicaId("m-toy-2"), retiring=True, ended=True)) if over else found


def test_a_node_looked_at_alone_shows_what_it_holds_and_who_said_what_of_it(story: Story) -> None:
    missing = FileMissing(inspection=InspectionId("i"), source="path:/m", reason="no such file")
    story.say(Labelled(labels={"rack": "2", "zone": None}), missing)
    story.say(Capped(caps=Caps(replicas_per_model=2)))
    heartbeat: Any = {"at": 1.0}
    shown = node_detail(story.view, held(over=True), heartbeat)
    assert {
        "replicas": ["m-toy-1"],
        "claims": {"0": 5, "1": 7},
        "files": {"path:/m": file_shape(missing)},
        "own_labels": {"zone": "1"},
        "set_labels": {"rack": "2", "zone": None},
        "own_caps": {"replicas_per_model": None, "vram_budget": None},
        "set_caps": {"replicas_per_model": 2, "vram_budget": None},
        "heartbeat": heartbeat,
        **node_shape(story.view),
    } == shown
    assert {
        "labels": dict(story.view.labels),
        "own": {"zone": "1"},
        "set": {"rack": "2", "zone": None},
    } == labels_shape(story.view)


def test_what_is_claimed_adds_up_over_devices() -> None:
    assert {"replicas": 1, "bytes": 12} == claim_shape(held(over=True))
    assert {"replicas": 0, "bytes": 0} == claim_shape(NodeAssignments())


@pytest.mark.parametrize("budget", ["80%", "12GB", ""])
def test_a_budget_is_shown_as_it_is_written(budget: str) -> None:
    shown = caps_shape(Caps(replicas_per_model=0, vram_budget=parse_budget(budget)))
    assert 0 == shown["replicas_per_model"]
    assert shown["vram_budget"] is not None
    assert parse_budget(budget) == parse_budget(shown["vram_budget"])


def test_the_brake_is_shown_with_how_many_fell_silent() -> None:
    assert {"silent": 3, "healthy_before": 7} == brake_shape(BrakeSet(silent=3, healthy_before=7))


# models


WEIGHTS = Weights(format="gguf", weight_bytes=9, kv_bytes_per_token=2, heads=4, kv_heads=3, vision_heads=1)


def test_a_file_is_shown_with_what_its_header_says_or_why_there_is_none() -> None:
    small = MetadataFile(name="tokenizer.json", size=1, blake3="0" * 64)
    found = FileFound(inspection=InspectionId("i"), source="path:/m", size=3, weights=WEIGHTS, metadata=(small,))
    shown: Mapping[str, Any] = {**file_shape(found)}
    assert ("file_found", 3, 9, 4, 3, 1) == (
        shown["type"],
        shown["size"],
        shown["weights"]["weight_bytes"],
        shown["weights"]["heads"],
        shown["weights"]["kv_heads"],
        shown["weights"]["vision_heads"],
    )
    assert [{"name": "tokenizer.json", "size": 1, "blake3": "0" * 64}] == shown["metadata"]
    assert ({"count": 0, "bytes": 0}, None, "") == (shown["files"], shown["pinned"], shown["licence"])
    assert not shown["gated"]
    assert ("i", "path:/m") == (shown["inspection"], shown["source"])
    missing = FileMissing(inspection=InspectionId("i"), source="path:/m", reason="no such file")
    assert {"type": "file_missing", "v": 1, "inspection": "i", "source": "path:/m", "reason": "no such file"} == (
        file_shape(missing)
    )


FILES = tuple(SourceFile(name=f"{number}.safetensors", size=7, checksum="git:" + "a" * 40) for number in range(2))
HUB = HfSource(repository="Qwen/Qwen3-0.6B", revision="1" * 40)


def test_a_file_at_a_hub_is_shown_with_its_commit_licence_gate_and_count_of_files() -> None:
    found = FileFound(
        inspection=InspectionId("i"),
        source="hf:Qwen/Qwen3-0.6B",
        size=14,
        weights=WEIGHTS,
        files=FILES,
        pinned=HUB,
        licence="apache-2.0",
        gated=True,
    )
    shown: Mapping[str, Any] = {**file_shape(found)}
    assert ({"count": 2, "bytes": 14}, "apache-2.0", True) == (shown["files"], shown["licence"], shown["gated"])
    assert f"hf:Qwen/Qwen3-0.6B@{'1' * 40}" == shown["pinned"]
    assert [file.model_dump() for file in FILES] == files_shape(FILES)


@pytest.mark.parametrize(
    "source",
    [
        SimulatedSource(),
        BuiltinSource(name="tiny"),
        PathSource(path="/m"),
        HUB,
        HttpsSource(url="https://models.example/m.gguf"),
        S3Source(bucket="models", key="m.gguf", region="eu-1", endpoint="https://s3.example"),
        UploadSource(name="m.gguf"),
    ],
)
def test_a_spec_is_shown_as_it_was_asked_for_with_its_files_counted(source: Source) -> None:
    spec = ModelSpec(
        source=source,
        engine="llama.cpp",
        context_tokens=9,
        concurrency=3,
        engine_args={"batch_tokens": 4},
        min_replicas=2,
        max_replicas=5,
        spread_all=True,
        selector={"zone": "1"},
        capability=("8.9", "gfx942"),
        anti_affinity="front",
        policy="mine",
        priority=2,
        strategy="spread",
        layout=Layout(
            tensor_parallel=2,
            pipeline_parallel=3,
            gpus=("n-a:0", "n-b:1"),
            gpus_per_replica=6,
            preferred_nodes=("n-a",),
            distributed=True,
            cpu_offload=False,
        ),
        weights=WEIGHTS,
        adapters=(LoraAdapter(name="l", path="/l", scale=0.5, bytes=6, fingerprint="f"),),
    )
    said = spec.model_dump(mode="json")
    assert said | {"files": {"count": 0, "bytes": 0}} == spec_shape(spec)
    fetched = spec.model_copy(update={"files": FILES})
    assert said | {"files": {"count": 2, "bytes": 14}} == spec_shape(fetched)
    drafted = spec.model_copy(update={"draft": WEIGHTS})
    assert said | {"files": {"count": 0, "bytes": 0}, "draft": said["weights"]} == spec_shape(drafted)


def test_a_model_is_shown_with_how_it_stands() -> None:
    log = FleetLog()
    log.model("toy", SPEC, digest="d-1")
    stands = ModelStanding("ready", "slow", 1, 2, 1, Failing(3, "no such argument"))
    shown = model_shape(log.fleet.models[ID], stands, 5.5)
    failing = {"revision": 3, "reason": "no such argument"}
    assert {
        "id": "m-toy",
        "name": "toy",
        "state": "ready",
        "reason": "slow",
        "ready": 1,
        "wanted": 2,
        "revision": 1,
        "serves": 1,
        "failing": failing,
        "digest": "d-1",
        "source": "simulated:",
        "spec": spec_shape(SPEC),
        "size": None,
        "created_at": 5.5,
    } == shown
    detail = openai_model_detail(log.fleet.models[ID], 5.5, stands, "not compared yet")
    assert ("toy", "model", 5, "weft") == (detail["id"], detail["object"], detail["created"], detail["owned_by"])
    assert {
        "id": "m-toy",
        "state": "ready",
        "reason": "slow",
        "ready": 1,
        "wanted": 2,
        "engine": "simulated",
        "ability": "text",
        "context_tokens": SPEC.context_tokens,
        "revision": 1,
        "serves": 1,
        "failing": failing,
        "no_tokenizer": "not compared yet",
    } == detail["weft"]
    assert model_shape(log.fleet.models[ID], ModelStanding("empty", None, 0, 0), 0.0)["failing"] is None


# replicas

RECEIPT = Receipt(
    position=0, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0.0, refusals={}, candidates=()
)
MEMBERS = (
    Member(node=NodeId("n-b"), rank=1, devices=(DeviceClaim(index=0, bytes=5),)),
    Member(node=A, rank=0, devices=(DeviceClaim(index=0, bytes=7), DeviceClaim(index=1, bytes=1))),
)
PLACED = Placed(model=ID, revision=1, epoch=1, members=MEMBERS, receipt=RECEIPT)
UNPLACEABLE = Unplaceable(model=ID, revision=1, reason="no room", receipt=RECEIPT)
WAITING = ReplicaView(ONE, ID, 1, 1, "d-1", Cause(CorrelationId("c")), added_at=4.0)
THERE = changed(WAITING, placed=PLACED, members=MEMBERS, epoch=1)
RUN = RunView(A, 1, "ready", EventId("e9"), CorrelationId("c"), 9, 1.0, Incarnation("i-1"), 9000, "simulated", "0.1")


def running(**changes: Any) -> ReplicaView:
    return changed(THERE, runs={A: changed(RUN, **changes), NodeId("n-b"): changed(RUN, port=1)})


def test_a_replica_is_shown_with_its_leaders_node_and_run(story: Story) -> None:
    shown = replica_shape(running(), "toy", story.log.fleet.nodes)
    assert {
        "id": "m-toy-1",
        "model": "m-toy",
        "model_name": "toy",
        "revision": 1,
        "digest": "d-1",
        "state": "ready",
        "wanted": True,
        "node": "n-a",
        "node_name": "a",
        "members": [
            {"node": "n-b", "rank": 1, "devices": [{"index": 0, "bytes": 5}]},
            {"node": "n-a", "rank": 0, "devices": [{"index": 0, "bytes": 7}, {"index": 1, "bytes": 1}]},
        ],
        "epoch": 1,
        "engine": "simulated",
        "engine_version": "0.1",
        "port": 9000,
        "incarnation": "i-1",
        "run_event": "e9",
        "reason": None,
        "added_at": 4.0,
    } == shown
    assert {
        "id": "m-toy-1",
        "model": "m-toy",
        "model_name": "toy",
        "state": "ready",
        "wanted": True,
        "node_name": "a",
        "members": shown["members"],
        "bytes": 13,
        "reason": None,
    } == replica_line(running(), "toy", story.log.fleet.nodes)


def test_a_group_is_shown_with_what_ended_any_of_its_ranks(story: Story) -> None:
    def reason(view: ReplicaView) -> str | None:
        shown = replica_shape(view, "toy", story.log.fleet.nodes)["reason"]
        assert shown == replica_line(view, "toy", story.log.fleet.nodes)["reason"]
        return shown

    ended = changed(RUN, phase="stopped", stopped="exited", reason="killed")
    assert "it starts again after: killed" == reason(changed(THERE, runs={A: RUN, NodeId("n-b"): ended}))
    assert "it starts again after: killed" == reason(changed(THERE, runs={NodeId("n-b"): ended}))
    anew = changed(THERE, restarted="rank 1 on b ended: killed")
    assert "all its ranks start again: rank 1 on b ended: killed" == reason(anew)
    assert reason(changed(running(), restarted="rank 1 on b ended: killed")) is None


def test_what_a_replica_has_not_yet_is_null(story: Story) -> None:
    shown: Mapping[str, Any] = {**replica_shape(WAITING, "toy", story.log.fleet.nodes)}
    missing = ("node", "node_name", "engine", "port", "incarnation", "run_event", "reason")
    assert [None] * len(missing) == [shown[name] for name in missing]
    assert ("", []) == (shown["engine_version"], shown["members"])
    line = replica_line(WAITING, "toy", story.log.fleet.nodes)
    assert (None, 0, None) == (line["node_name"], line["bytes"], line["reason"])


def test_a_node_that_the_log_forgot_has_an_id_and_no_name() -> None:
    shown = replica_shape(running(), "toy", {})
    assert ("n-a", None, 9000) == (shown["node"], shown["node_name"], shown["port"])
    assert replica_line(running(), "toy", {})["node_name"] is None


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (WAITING, None),
        (changed(WAITING, unplaceable=UNPLACEABLE), "no room"),
        (changed(THERE, unplaceable=UNPLACEABLE), None),
        (changed(WAITING, unplaceable=UNPLACEABLE, wanted=False, retire_why="too many"), "too many"),
        (changed(WAITING, unplaceable=UNPLACEABLE, wanted=False), None),
        (running(phase="degraded", reason="stands still"), "stands still"),
        (running(phase="stopped", stopped="exited", reason="killed"), "it starts again after: killed"),
        (running(phase="stopped", stopped="retired", reason="retired"), "retired"),
        (running(phase="loading", last_end="killed"), "it starts again after: killed"),
        (running(claimed=2 << 30, used=5 << 29), "it holds 2.50 GiB of memory and claims 2.00 GiB"),
        (running(phase="loading"), None),
    ],
)
def test_the_reason_is_what_keeps_a_replica_from_serving(view: ReplicaView, reason: str | None) -> None:
    assert reason == replica_shape(view, "toy", {})["reason"]
    assert reason == replica_line(view, "toy", {})["reason"]
