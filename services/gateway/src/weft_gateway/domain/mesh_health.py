"""What is wrong in the mesh, in sentences."""

from collections.abc import Mapping

from weft_contracts.ids import ModelId
from weft_fleet import Fleet

from weft_gateway.domain.model_state import ModelStanding

NAMED = 10
"""Nodes that wait for approval are named one by one up to so many."""


def problems_of(fleet: Fleet, models: Mapping[ModelId, ModelStanding]) -> list[str]:
    """One sentence for each node and model that needs an admin's attention, and one for all nodes that wait for
    approval where they are many: anybody with a token could fill the list."""
    found: list[str] = []
    if fleet.brake is not None:
        found.append(
            f"the brake is set: {fleet.brake.silent} of {fleet.brake.healthy_before} nodes fell silent at once,"
            " nothing is replaced"
        )
    waiting = [node.name for node in fleet.nodes.values() if node.state == "pending" and not node.approved]
    for node in fleet.nodes.values():
        if node.state in ("unhealthy", "offline"):
            found.append(f"node {node.name} is {node.state}")
        elif node.state == "cut_off":
            found.append(f"node {node.name} is cut off: {node.cut_off}")
        elif node.state == "pending" and not node.approved and len(waiting) <= NAMED:
            found.append(f"node {node.name} waits for approval")
    if len(waiting) > NAMED:
        found.append(f"{len(waiting)} nodes wait for approval, the first of them {', '.join(waiting[:NAMED])}")
    for id, stands in models.items():
        if stands.state in ("unservable", "unplaceable"):
            found.append(f"model {fleet.models[id].name} is {stands.state}: {stands.reason}")
        elif stands.failing is not None:
            number, why = stands.failing
            kept = f"revision {stands.serves} goes on"
            found.append(f"revision {number} of model {fleet.models[id].name} can't be served: {why}; {kept}")
    return found
