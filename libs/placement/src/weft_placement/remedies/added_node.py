"""A node that isn't there yet: with the least memory that holds the replica, in whole GiB."""

from collections import Counter

from weft_contracts.digest import lora_key
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.machine import FileFound
from weft_contracts.facts.source import BuiltinSource
from weft_contracts.facts.values import Addresses, Backend, Device, Hardware, Vendor, Weights
from weft_contracts.formats import WORKERS_READ
from weft_contracts.ids import InspectionId, NodeId
from weft_fleet import NodeView
from weft_fleet.node_view import looked_at

from weft_placement.claim import GIB
from weft_placement.demand import Demand
from weft_placement.device_memory import PROCESSOR, RESERVED_BYTES, RESERVED_SHARE
from weft_placement.remedies.question import Question
from weft_placement.remedies.remedy import Step

NEW = NodeId("n-new")


def added_node(question: Question) -> tuple[NodeView, Step] | None:
    """The node, of the vendor that most nodes have of those that the engine can use; a processor where no node has an
    accelerator. None: nothing would hold it."""
    demand = question.demand
    vendor = _vendor(question)
    if vendor is None or demand.chosen is not None:
        return None
    count, stages = (1, 1) if vendor == "cpu" else (demand.devices or 1, demand.stages or 1)
    need, devices = demand.need, count * stages
    each = need.on_each(vendor, count, stages)
    if need.fraction is not None:
        each = int(each / need.fraction) + 1
    beside = need.beside(devices) if vendor != "cpu" else each
    size, memory = _whole(each), _whole(max(beside / (1 - RESERVED_SHARE), beside + RESERVED_BYTES) if beside else 0)
    gpus = (
        Device(index=PROCESSOR + 1 + place, number=place, vendor=vendor, name=vendor, memory=size)
        for place in range(devices if vendor != "cpu" else 0)
    )
    host = (Device(index=PROCESSOR, vendor="cpu", name="processor", memory=memory),) if memory else ()
    view = _view(demand, Hardware(cpus=1, memory=memory, devices=(*host, *gpus)), vendor)
    return view, Step("add", f"add a node with {_told(demand, vendor, devices, size, memory)}", amount=size * devices)


def _vendor(question: Question) -> Vendor | None:
    demand = question.demand
    if demand.need.place == "processor":
        return "cpu" if "cpu" in demand.profile.vendors else None
    counted: Counter[Vendor] = Counter(
        device.vendor
        for node in question.fleet.nodes.values()
        for device in (node.hardware.devices if node.hardware is not None else ())
        if device.vendor in demand.profile.vendors and device.vendor != "cpu"
    )
    if counted:
        return max(counted, key=lambda vendor: (counted[vendor], vendor))
    on_processor = demand.need.place == "anywhere" and demand.spans == 1 and "cpu" in demand.profile.vendors
    accelerators: list[Vendor] = [vendor for vendor in demand.profile.vendors if vendor != "cpu"]
    if on_processor and (question.fleet.nodes or not accelerators):
        return "cpu"
    return next(iter(accelerators), None)


def _view(demand: Demand, hardware: Hardware, vendor: Vendor) -> NodeView:
    spec, profile = demand.spec, demand.profile
    labels = {key: value for key, value in spec.selector.items() if not key.startswith("!")}
    own = _found(demand.source, spec.weights)
    adapters = {
        looked_at(lora_key(each), spec.engine): _found(
            lora_key(each), Weights(format="gguf", weight_bytes=each.bytes, fingerprint=each.fingerprint)
        )
        for each in spec.adapters
    }
    draft = {looked_at(demand.draft, spec.engine): _found(demand.draft, spec.draft)} if spec.draft is not None else {}
    named = "" if profile.name in BUILTIN else profile.digest
    return NodeView(
        id=NEW,
        name="a new node",
        public_key="",
        addresses=Addresses(host="127.0.0.1", http_port=1),
        own_labels=labels,
        labels=labels,
        approved=True,
        presence="healthy",
        hardware=hardware,
        backends=(Backend(engine=profile.name, version="", vendors=(vendor,), profile=named),),
        builtins=(spec.source.name,) if isinstance(spec.source, BuiltinSource) else (),
        reads=dict(WORKERS_READ),
        files={looked_at(demand.source, spec.engine): own, **adapters, **draft},
    )


def _found(source: str, weights: Weights) -> FileFound:
    return FileFound(inspection=InspectionId("i-0"), source=source, size=weights.weight_bytes, weights=weights)


def _whole(size: float) -> int:
    return -(-int(size) // GIB) * GIB


def _told(demand: Demand, vendor: Vendor, devices: int, size: int, memory: int) -> str:
    told = f"{memory // GIB} GiB of memory"
    if vendor != "cpu":
        each = f"{size // GIB} GiB" if devices == 1 else f"{size // GIB} GiB each"
        what = f"{devices} {vendor} {'device' if devices == 1 else 'devices'} of {each}"
        told = f"{what} and {told}" if memory else what
    labels = [f"{key}={value}" for key, value in demand.spec.selector.items() if not key.startswith("!")]
    return told + (f", labelled {','.join(labels)}" if labels else "")
