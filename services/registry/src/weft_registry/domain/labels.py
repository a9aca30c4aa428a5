"""Labels: what a node says of itself, and over it what an admin set or took away."""

from collections.abc import Mapping

from weft_contracts.commit import Decision
from weft_contracts.facts.node import Labelled
from weft_contracts.facts.request import LabelsRequested
from weft_fleet import NodeView
from weft_fleet.auto_labels import is_automatic
from weft_requests import PendingRequest

from weft_registry.domain.node_change import on_node

MAX_LABELS = 64
MAX_LABEL = 63


def label_fault(labels: Mapping[str, str]) -> str | None:
    """What is wrong with a node's labels."""
    if len(labels) > MAX_LABELS:
        return f"a node has at most {MAX_LABELS} labels, this one {len(labels)}"
    if any(not 1 <= len(key) <= MAX_LABEL or len(value) > MAX_LABEL for key, value in labels.items()):
        return f"a label's name has 1 to {MAX_LABEL} characters and its value at most {MAX_LABEL}"
    return None


def own_label_fault(labels: Mapping[str, str]) -> str | None:
    """What is wrong with the labels that a node gives itself: the mesh's own are not its to give."""
    if claimed := sorted(filter(is_automatic, labels)):
        return f"the label {claimed[0]} follows from the machine itself, and can't be given by its worker: leave it out"
    return label_fault(labels)


def label(pending: PendingRequest, node: NodeView, asked: LabelsRequested) -> Decision:
    """Change what an admin says of a node's labels."""
    said = said_after(node, asked)
    borne = {key: value for key, value in {**node.own_labels, **said}.items() if value is not None}
    if fault := label_fault(borne):
        return pending.rejected(400, fault)
    if said == node.set_labels:
        return on_node(pending, node, None, f"{node.name} has these labels already")
    fact = Labelled(
        labels={key: value for key, value in said.items() if (key, value) not in node.set_labels.items()},
        forgotten=tuple(sorted(node.set_labels.keys() - said.keys())),
    )
    return on_node(pending, node, fact, f"{node.name} labelled")


def said_after(node: NodeView, asked: LabelsRequested) -> dict[str, str | None]:
    """What an admin says of the node's labels then.

    To take away what only an admin had set, nothing need be said: if the node should come to say it of itself later,
    that is news.
    """
    gone = {key for key, value in node.set_labels.items() if value is None}
    its_own = gone | node.own_labels.keys() | (node.labels.keys() - node.set_labels.keys())
    match asked.how:
        case "merge":
            said = {**node.set_labels, **asked.labels}
        case "replace":
            said = {**dict.fromkeys(its_own), **asked.labels}
        case "return":
            said = {}
    return {key: value for key, value in said.items() if value is not None or key in its_own}
