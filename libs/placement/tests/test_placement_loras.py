"""LoRA adapters in placement: nodes that lack one say so, and their bytes are claimed."""

from weft_contracts.digest import lora_key
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.layers import LayerRun
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.machine import FileFound, FileMissing, Reported
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import Backend, Device, Hardware, ModelSpec, Weights
from weft_contracts.ids import InspectionId, NodeId, replica_id
from weft_contracts.subjects import machine
from weft_placement import NoPlace, Placement, Policy, decide_placement, dry_run
from weft_placement.claim import GIB, MIB, need_of
from weft_testing.fleet_log import FleetLog

LLAMA = BUILTIN["llama.cpp"]
WEIGHTS = Weights(
    format="gguf",
    weight_bytes=1000 * MIB,
    kv_bytes_per_token=1024,
    layers=10,
    layer_runs=(LayerRun(10, 90 * MIB, 102),),
    input_bytes=50 * MIB,
    output_bytes=50 * MIB,
)
ADAPTER = LoraAdapter(name="style", path="/loras/style.gguf", bytes=40 * MIB, fingerprint="f" * 16)
ASKED = LoraAdapter(name="style", path="/loras/style.gguf")


def spec(*adapters: LoraAdapter, **arguments: int) -> ModelSpec:
    return ModelSpec(
        source=PathSource(path="/m"),
        engine="llama.cpp",
        weights=WEIGHTS.without_layers if not arguments else WEIGHTS,
        adapters=adapters,
        engine_args={**arguments},
    )


def node(log: FleetLog, name: str, reads: int = 3) -> NodeId:
    id = log.node(name, GIB)
    device = Device(index=0, vendor="cpu", name="-", memory=8 * GIB)
    log.add(
        machine(id),
        Reported(
            hardware=Hardware(cpus=8, memory=8 * GIB, devices=(device,)),
            backends=(Backend(engine="llama.cpp", version="1", vendors=("cpu",), profile=LLAMA.digest),),
            builtins=(),
            agent_version="1",
            reads={"node.assigned": reads},
        ),
        FileFound(inspection=InspectionId("i-1"), source="path:/m", size=1, weights=WEIGHTS),
    )
    return id


def found(log: FleetLog, id: NodeId, fingerprint: str = ADAPTER.fingerprint) -> None:
    own = Weights(format="gguf", weight_bytes=ADAPTER.bytes, fingerprint=fingerprint)
    log.add(
        machine(id),
        FileFound(inspection=InspectionId("i-2"), source=lora_key(ADAPTER), size=ADAPTER.bytes, weights=own),
    )


def decided(log: FleetLog, wanted: ModelSpec) -> Placement | NoPlace:
    model = log.model("m", wanted, replicas=1)
    return decide_placement(log.fleet, replica_id(model, 1), Policy(), 0.0, 1)


def test_a_node_takes_it_that_holds_the_same_adapter_and_the_others_say_why_not() -> None:
    log = FleetLog()
    node(log, "unasked")
    log.add(
        machine(node(log, "without")),
        FileMissing(inspection=InspectionId("i-2"), source=lora_key(ADAPTER), reason="it does not exist"),
    )
    found(log, node(log, "other"), fingerprint="0" * 16)
    found(log, node(log, "older", reads=2))
    assert {
        "has not answered yet whether it holds lora:/loras/style.gguf": 1,
        "cannot load lora:/loras/style.gguf: it does not exist": 1,
        "holds another LoRA adapter at lora:/loras/style.gguf": 1,
        "has a worker of an earlier version, which can't read LoRA adapters": 1,
    } == decided(log, spec(ADAPTER)).receipt.refusals

    holder = node(log, "holder")
    found(log, holder)

    taken = decided(log, spec(ADAPTER))
    assert isinstance(taken, Placement)
    assert [holder] == [member.node for member in taken.members]


def test_adapters_are_claimed_beside_the_model() -> None:
    plain, adapted = need_of(spec(), LLAMA), need_of(spec(ADAPTER), LLAMA)
    assert 40 * MIB == adapted.on_each("cpu", 1) - plain.on_each("cpu", 1)

    plain, adapted = need_of(spec(gpu_layers=5), LLAMA), need_of(spec(ADAPTER, gpu_layers=5), LLAMA)
    assert 40 * MIB == adapted.on_each("nvidia", 1) - plain.on_each("nvidia", 1) == adapted.beside(1) - plain.beside(1)


def test_a_dry_run_counts_what_nodes_found_of_an_adapter() -> None:
    log = FleetLog()
    found(log, node(log, "a"))

    tried = dry_run(log.fleet, "m", spec(ASKED))

    assert (True, (ADAPTER,)) == (tried.fits, tried.spec.adapters)
