"""The engine, and a device that it can use."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.device_memory import takes, vendors_for


def backend(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node without an installed backend of the engine for one of its devices."""
    if node.hardware is None:
        return "has not reported its hardware"
    engine = demand.profile
    vendors = vendors_for(node, engine)
    if not vendors:
        if any(backend.engine == engine.name for backend in node.backends):
            return f"has another profile of {engine.name} than the mesh"
        return f"has no {engine.name} backend"
    if not any(takes(device, engine, vendors) for device in node.hardware.devices):
        return f"has no device that its {engine.name} backend can use"
    return None
