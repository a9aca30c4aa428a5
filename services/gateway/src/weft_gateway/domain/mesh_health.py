"""What is wrong in the mesh, in sentences."""

from collections.abc import Mapping

from weft_contracts.ids import ModelId
from weft_placement.fleet import Fleet

from weft_gateway.domain.model_state import ModelStanding


def problems_of(fleet: Fleet, models: Mapping[ModelId, ModelStanding]) -> list[str]:
    """One sentence for each node and model that needs somebody's eye."""
    found: list[str] = []
    if fleet.brake is not None:
        found.append(
            f"the brake is set: {fleet.brake.silent} of {fleet.brake.healthy_before} nodes fell silent at once,"
            " nothing is replaced"
        )
    for node in fleet.nodes.values():
        if node.state in ("unhealthy", "offline"):
            found.append(f"node {node.name} is {node.state}")
        elif node.state == "pending" and not node.approved:
            found.append(f"node {node.name} waits for approval")
    for id, stands in models.items():
        if stands.state in ("unservable", "unplaceable"):
            found.append(f"model {fleet.models[id].name} is {stands.state}: {stands.reason}")
    return found
