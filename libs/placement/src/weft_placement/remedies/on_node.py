"""What would have to change on a node for its filters to let a replica pass, one filter after the other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from weft_contracts.engines import BUILTIN
from weft_contracts.facts.machine import FileFound
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import Backend, Vendor
from weft_contracts.formats import WORKERS_READ
from weft_contracts.ids import InspectionId
from weft_fleet import NodeAssignments, NodeView
from weft_fleet.auto_labels import is_automatic
from weft_fleet.changed import changed
from weft_fleet.node_view import looked_at

from weft_placement.demand import Demand
from weft_placement.device_memory import takes
from weft_placement.filters import FILTERS, Filter
from weft_placement.filters.approved import approved
from weft_placement.filters.backend import backend
from weft_placement.filters.disk import disk, room_for, room_left
from weft_placement.filters.files import files
from weft_placement.filters.formats import formats
from weft_placement.filters.labels import labels
from weft_placement.filters.per_model import per_model
from weft_placement.filters.schedulable import schedulable
from weft_placement.fit.option import gib
from weft_placement.remedies.remedy import Step

Mended = tuple[NodeView, Step]
Mend = Callable[[NodeView, NodeAssignments, Demand, str], Mended | None]
"""The node as it would be, and what makes it so; the text is the filter's reason. None: people can't."""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node with some changes made."""

    node: NodeView
    assigned: NodeAssignments
    steps: tuple[Step, ...] = ()


def mended(node: NodeView, assigned: NodeAssignments, demand: Demand, stage: int, reason: str) -> Mended | None:
    """Past the filter that refuses it, the `stage`th."""
    mend = _MENDS.get(FILTERS[stage])
    return None if mend is None else mend(node, assigned, demand, reason)


def _approve(node: NodeView, assigned: NodeAssignments, demand: Demand, reason: str) -> Mended:
    presence = "healthy" if node.presence in ("pending", "joined") else node.presence
    step = Step("approve", f"approve {node.name}", f"weft nodes approve {node.name}", node=node.id)
    return changed(node, approved=True, rejected=None, presence=presence), step


def _open(node: NodeView, assigned: NodeAssignments, demand: Demand, reason: str) -> Mended:
    if node.cut_off is not None or node.draining:
        why = "is cut off" if node.cut_off is not None else "is draining"
        step = Step("resume", f"resume {node.name}, which {why}", f"weft nodes resume {node.name}", node=node.id)
        return changed(node, cut_off=None, draining=False, drained=False, drain=None), step
    if node.presence != "healthy":
        step = Step("start", f"bring {node.name} back, which {reason}", node=node.id)
        return changed(node, presence="healthy"), step
    step = Step("uncordon", f"uncordon {node.name}", f"weft nodes uncordon {node.name}", node=node.id)
    return changed(node, cordoned=False), step


def _label(node: NodeView, assigned: NodeAssignments, demand: Demand, reason: str) -> Mended | None:
    wanted = next(
        (
            (key, value)
            for key, value in demand.spec.selector.items()
            if (key[1:] in node.labels if key.startswith("!") else node.labels.get(key) != value)
        ),
        None,
    )
    if wanted is None:
        return None
    key, value = wanted
    name = key.removeprefix("!")
    if is_automatic(name):
        return None
    if key.startswith("!"):
        command = f"weft nodes label {node.name} {name}-"
        step = Step("label", f"take the label {name} from {node.name}", command, node=node.id)
        left = {each: text for each, text in node.labels.items() if each != name}
        return changed(node, labels=left), step
    command = f"weft nodes label {node.name} {name}={value}"
    step = Step("label", f"label {node.name} with {name}={value}", command, node=node.id)
    return changed(node, labels={**node.labels, name: value}), step


def _upgrade(node: NodeView, assigned: NodeAssignments, demand: Demand, reason: str) -> Mended:
    step = Step("upgrade", f"upgrade the worker of {node.name}, which {reason}", node=node.id)
    return changed(node, reads=dict(WORKERS_READ)), step


def _install(node: NodeView, assigned: NodeAssignments, demand: Demand, reason: str) -> Mended | None:
    """The engine in a build for all of the node's devices that it can compute on."""
    profile, hardware = demand.profile, node.hardware
    if hardware is None:
        return None
    usable = [device for device in hardware.devices if takes(device, profile, profile.vendors)]
    if not usable:
        return None
    vendors: dict[Vendor, None] = dict.fromkeys(device.vendor for device in usable)
    named = "" if profile.name in BUILTIN else profile.digest
    lies = Backend(engine=profile.name, version="", vendors=tuple(vendors), profile=named)
    others = tuple(each for each in node.backends if each.engine != profile.name)
    step = Step("install", f"install {profile.name} on {node.name}, which {reason}", node=node.id)
    return changed(node, backends=(*others, lies)), step


def _file(node: NodeView, assigned: NodeAssignments, demand: Demand, reason: str) -> Mended | None:
    """The model's own file, where it is one of the node's own disk."""
    source = demand.spec.source
    if not isinstance(source, PathSource):
        return None
    found = FileFound(
        inspection=InspectionId("i-0"),
        source=demand.source,
        size=demand.spec.weights.weight_bytes,
        weights=demand.spec.weights,
    )
    step = Step("file", f"put {source.path} on {node.name}, and deploy the model again", node=node.id)
    there = {**node.files, looked_at(demand.source, demand.spec.engine): found}
    return changed(node, files=there), step


def _disk(node: NodeView, assigned: NodeAssignments, demand: Demand, reason: str) -> Mended | None:
    left = room_left(node, assigned, demand.files)
    if node.hardware is None or left is None:
        return None
    lacking = room_for(demand.file_bytes) - left
    hardware = node.hardware.model_copy(update={"disk_free": (node.hardware.disk_free or 0) + lacking})
    step = Step("disk", f"free {gib(lacking)} of the disk of {node.name}", amount=lacking, node=node.id)
    return changed(node, hardware=hardware), step


def _cap(node: NodeView, assigned: NodeAssignments, demand: Demand, reason: str) -> Mended:
    more = assigned.models.get(demand.model, 0) + 1
    command = f"weft nodes max-replicas {node.name} {more}"
    step = Step("cap", f"let {node.name} run {more} replicas of a model", command, node=node.id)
    return changed(node, caps=node.caps.model_copy(update={"replicas_per_model": more})), step


_MENDS: Mapping[Filter, Mend] = MappingProxyType(
    {
        approved: _approve,
        schedulable: _open,
        labels: _label,
        formats: _upgrade,
        backend: _install,
        files: _file,
        disk: _disk,
        per_model: _cap,
    }
)
