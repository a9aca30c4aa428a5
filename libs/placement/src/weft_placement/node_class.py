"""What nodes have in common for whoever places a replica: nodes of one class answer alike but for what runs there, what
they told of files, and their labels beside `pool`."""

from collections.abc import Hashable

from weft_fleet import NodeView

from weft_placement.filters.pool import POOL


def class_of(node: NodeView) -> Hashable:
    """Everything that is alike on nodes of one class.

    Left out is what a `NodeRecord` has of each: other labels, the disk, what is claimed and what others use, how much
    memory the machine has. Cost: a look at its devices and backends.
    """
    caps = node.caps.vram_budget
    return (
        (node.kind, node.approved, node.presence, node.cut_off, node.draining, node.cordoned, node.removed),
        POOL in node.labels,
        tuple(sorted(node.reads.items())),
        _devices(node),
        tuple((each.engine, each.version, each.vendors, each.profile) for each in node.backends),
        node.builtins,
        _installs(node),
        frozenset((each.engine, each.vendor, each.version, each.recipe) for each in node.environments),
        (node.caps.replicas_per_model, None if caps is None else (caps.share, caps.bytes)),
    )


def _devices(node: NodeView) -> Hashable:
    """None: not reported."""
    if node.hardware is None:
        return None
    return tuple(
        (
            (each.index, each.vendor, each.name, each.unified, each.simulated, each.budget is not None),
            (each.driver, each.compute_capability),
            each.memory if each.vendor != "cpu" else None,
        )
        for each in node.hardware.devices
    )


def _installs(node: NodeView) -> Hashable:
    installs = node.installs
    if installs is None:
        return None
    known = installs.disk_free is not None
    return (installs.allowed, installs.own_index, tuple(sorted(installs.room.items())), installs.builds, known)
