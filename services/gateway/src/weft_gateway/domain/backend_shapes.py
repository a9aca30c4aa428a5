"""What the API shows of backends: of a node's, and of how engines are installed."""

from typing import cast

import weft_api as api
from weft_contracts.backends import BackendRecipe, BackendVariant
from weft_contracts.facts.node import BackendWanted
from weft_contracts.facts.values import InstalledBackend
from weft_fleet import Fleet, NodeView

from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.domain.progress_shapes import installs_of
from weft_gateway.domain.value_shapes import backend_shape


def node_backends_shape(fleet: Fleet, board: ProgressBoard, node: NodeView) -> api.NodeBackends:
    """What a node has installed, and what it installs for replicas that are assigned to it."""
    installing: list[api.BackendInstall] = []
    for id in fleet.assigned(node.id).assignments:
        replica = fleet.replicas.get(id)
        run = replica.runs.get(node.id) if replica is not None else None
        if replica is not None and run is not None and run.phase == "installing":
            model = fleet.models.get(replica.model)
            installing.append(
                {
                    "replica": id,
                    "model_name": model.name if model is not None else "",
                    "engine": run.engine or "",
                    "since": run.at,
                    "last_end": run.last_end or None,
                }
            )
    installs = node.installs
    return {
        "node": node.id,
        "node_name": node.name,
        "allowed": installs.allowed if installs is not None else None,
        "disk_free": installs.disk_free if installs is not None else None,
        "installed": [backend_shape(each) for each in node.backends],
        "installing": installing,
        "installs": installs_of(board, node.id),
        "environments": [_environment(fleet, node, each) for each in node.environments],
        "wanted": [_wanted(node, key, each) for key, each in sorted(node.wishes.wanted.items())],
    }


def _environment(fleet: Fleet, node: NodeView, each: InstalledBackend) -> api.InstalledBackend:
    used = [
        id
        for id in fleet.assigned(node.id).assignments
        if (replica := fleet.replicas.get(id)) is not None
        and (run := replica.runs.get(node.id)) is not None
        and run.backend == each.name
    ]
    return {
        "name": each.name,
        "engine": each.engine,
        "vendor": each.vendor,
        "version": each.version,
        "bytes": each.bytes,
        "used_by": [*used],
        "unused_since": None if used else each.unused_since,
        "leaves": each.name in node.wishes.retired,
    }


def _wanted(node: NodeView, key: str, each: BackendWanted) -> api.WantedBackend:
    fault = node.wishes.faults.get(key)
    return {
        "engine": each.engine,
        "vendor": each.variant.vendor,
        "version": each.variant.version,
        "here": any(there.recipe == each.variant.digest for there in node.environments),
        "fault": fault.reason if fault is not None else None,
        "final": fault is not None and fault.final,
    }


def recipe_shape(recipe: BackendRecipe, *, builtin: bool) -> api.BackendRecipe:
    """All of it."""
    return {"engine": recipe.engine, "builtin": builtin, "variants": [_variant(each) for each in recipe.variants]}


def _variant(variant: BackendVariant) -> api.BackendVariant:
    return cast("api.BackendVariant", variant.model_dump(mode="json"))
