"""The engine, installed or to be had, and a device that it can use."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.device_memory import takes, vendors_for
from weft_placement.installable import installable


def backend(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that neither has a backend of the engine for one of its devices nor can install one."""
    if node.hardware is None:
        return "has not reported its hardware"
    engine = demand.profile
    vendors = vendors_for(node, engine, demand.recipe)
    if not vendors:
        if any(backend.engine == engine.name for backend in node.backends):
            return f"has another profile of {engine.name} than the mesh"
        why = installable(node, engine, demand.recipe)
        return f"has no {engine.name} backend" + (f", and {why}" if isinstance(why, str) and why else "")
    if not any(takes(device, engine, vendors) for device in node.hardware.devices):
        return f"has no device that its {engine.name} backend can use"
    return None
