"""Models whose replicas never share a node, since their specs name the same anti-affinity."""

from collections.abc import Iterator

from weft_fleet import Assignment, NodeAssignments, NodeView

from weft_placement.demand import Demand


def anti_affinity(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that runs a replica of a model with the same anti-affinity, of this model's own revision too.

    A retiring one does not count, nor does one of another revision of this model: a rollout may need its node.
    """
    name = demand.spec.anti_affinity
    if not name or next(_others(assigned, demand), None) is None:
        return None
    return f"runs a replica of the anti-affinity {name} already"


def told_other(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str:
    """Which one."""
    return ", ".join(sorted(str(each.replica) for each in _others(assigned, demand)))


def _others(assigned: NodeAssignments, demand: Demand) -> Iterator[Assignment]:
    for each in assigned.assignments.values():
        own = each.model == demand.model and each.revision != demand.revision
        if each.anti_affinity == demand.spec.anti_affinity and not each.retiring and not own:
            yield each
