"""A model's card, and which nodes offer a file of it, as the folded log tells it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from weft_contracts.card import Card, CardFile
from weft_contracts.ids import NodeId
from weft_contracts.published_card import published_card
from weft_fleet import Fleet, ModelView, NodeView, Revision, RunView

MOST_HOLDERS = 8
"""Nodes that are asked for one file."""


_Contents = frozenset[tuple[str, str]]
"""Names and checksums of what a run published."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A node that offers a file, at its registered address."""

    node: NodeId
    name: str
    host: str
    port: int


def present_card(fleet: Fleet, model: ModelView) -> Card | None:
    """The card of what serves now: what most of the ready replicas of the serving revision published, of two that as
    many did the one of the oldest replica. Without a ready one: of those that were.

    So one node that publishes other files than the rest decides nothing.
    """
    found: list[tuple[bool, _Contents, Revision, RunView]] = []
    for revision, _, run, ready in _runs(fleet, model):
        if revision.runs_as(model.serving):
            contents = frozenset((file.name, file.blake3) for file in run.metadata)
            found.append((ready, contents, revision, run))
    counted = [each for each in found if each[0]] or found
    times = Counter(contents for _, contents, _, _ in counted)
    for most, _ in times.most_common():  # of as many: in the order in which they came
        revision, run = next((revision, run) for _, contents, revision, run in counted if contents == most)
        if (card := published_card(revision.spec, run.metadata, run.self_hosted)) is not None:
            return card
    return None


def holders(fleet: Fleet, model: ModelView, file: CardFile) -> tuple[Holder, ...]:
    """The nodes whose server offers this very content under this name, ready and healthy ones first."""
    found: dict[Holder, bool] = {}
    for _, node, run, ready in _runs(fleet, model):
        port = node.addresses.http_port
        if not run.self_hosted or node.removed or not 0 < port < 65536:
            continue
        if any(each.name == file.name and f"blake3:{each.blake3}" == file.checksum for each in run.metadata):
            holder = Holder(node.id, node.name, node.addresses.host, port)
            found[holder] = found.get(holder, False) or (ready and node.presence == "healthy")
    return tuple(sorted(found, key=lambda holder: not found[holder]))[:MOST_HOLDERS]


def _runs(fleet: Fleet, model: ModelView) -> Iterator[tuple[Revision, NodeView, RunView, bool]]:
    """Each run that published something, oldest replica first, and whether it is ready."""
    for id in model.replicas:
        replica = fleet.replicas.get(id)
        if replica is None or replica.revision not in model.specs:
            continue
        for run in replica.runs.values():
            node = fleet.nodes.get(run.node)
            if node is not None and run.metadata:
                yield model.of(replica.revision), node, run, replica.wanted and replica.state == "ready"
