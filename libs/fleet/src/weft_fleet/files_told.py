"""Which nodes were told to have which files, in the fold: what a node says of its disk counts for no others."""

from collections.abc import Mapping

from weft_contracts.facts.node import Assigned
from weft_contracts.ids import ModelId, NodeId

from weft_fleet.changed import changed
from weft_fleet.model_view import ModelView
from weft_fleet.node_files import expected_after
from weft_fleet.node_view import NodeView


def told_by(view: NodeView, fact: Assigned, models: Mapping[ModelId, ModelView]) -> NodeView:
    """The node once an assignment told it to have its revision's files, where that names any."""
    model = models.get(fact.model)
    files = model.files.get(fact.revision) if model is not None else None
    if files is None or all(member.node != view.id for member in fact.members):
        return view
    return changed(view, expected=expected_after(view.expected, files))


def follow_told(
    told: dict[str, dict[NodeId, None]], id: NodeId, before: NodeView | None, after: NodeView | None
) -> None:
    """Change `told` as a node changed; None: it was unknown, or is forgotten. Free where it was told nothing."""
    was, now = _told(before), _told(after)
    if all(old is new for old, new in zip(was, now, strict=True)):
        return
    earlier, later = _all(was), _all(now)
    for files in later - earlier:
        told.setdefault(files, {})[id] = None
    for files in earlier - later:
        nodes = told[files]
        del nodes[id]
        if not nodes:
            del told[files]


_NOTHING: Mapping[str, object] = {}


def _told(view: NodeView | None) -> tuple[Mapping[str, object], Mapping[str, object]]:
    return (_NOTHING, _NOTHING) if view is None else (view.expected, view.file_wishes.wanted)


def _all(told: tuple[Mapping[str, object], Mapping[str, object]]) -> set[str]:
    return {*told[0], *told[1]}
