"""The fleet as JSON: a piece for each node, model and replica, rendered when it is first shown after it changed.

Views are frozen, so one that is the same object says the same. Rendering everything at each look took 30 ms of
everybody's event loop at 1,000 nodes and as many replicas, 300 ms at ten times the replicas (`bench/status.py`).
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from weft_api import Counts, ShownReplica, ShownReplicaLine
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_fleet import ModelView, NodeView, ReplicaView

from weft_gateway.domain.alias_shapes import alias_shape
from weft_gateway.domain.mesh_health import problems_of
from weft_gateway.domain.model_state import ModelStanding, standing
from weft_gateway.domain.shapes import claim_shape, model_shape, node_shape, replica_line, replica_shape
from weft_gateway.projections.directory import Directory

NODES_SHOWN = 48
REPLICAS_SHOWN = 12
"""Of each model, on the first page."""
_encode = msgspec.json.encode


class _Node:
    __slots__ = ("shape", "view")

    def __init__(self, view: NodeView) -> None:
        self.view = view
        self.shape: bytes | None = None


class _Model:
    __slots__ = ("shape", "stands", "view")

    def __init__(self, view: ModelView, stands: ModelStanding) -> None:
        self.view = view
        self.stands = stands
        self.shape: bytes | None = None


class _Replica:
    __slots__ = ("line", "listed", "ready", "shape", "state", "view")

    def __init__(self, view: ReplicaView) -> None:
        self.view = view
        self.state = view.state
        self.ready = self.state == "ready"
        self.listed = self.state != "stopped" or view.wanted
        self.shape: bytes | None = None
        self.line: bytes | None = None


class Rendered:
    """`update` first, then what is asked for: nothing is rendered while nothing changes."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._version = -1
        self._ejected: Mapping[ReplicaId, str] = {}
        self._nodes: dict[NodeId, _Node] = {}
        self._models: dict[ModelId, _Model] = {}
        self._replicas: dict[ReplicaId, _Replica] = {}
        self._own: dict[ModelId, dict[ReplicaId, _Replica]] = {}
        self._lines: dict[ModelId, tuple[int, bytes]] = {}
        """How many replicas of a model are listed, and the first of them."""
        self._whole: bytes | None = None
        self._page: bytes | None = None
        self.problems: tuple[str, ...] = ()

    def update(self, ejected: Mapping[ReplicaId, str]) -> int:
        """Follow the fleet; its version. `ejected` says which replicas this gateway doesn't ask, and why."""
        if self._version != self._directory.version or self._ejected != ejected:
            touched = self._follow_replicas() | self._follow_ejected(ejected)
            if self._follow_nodes():
                touched |= self._forget_replicas()
            self._follow_models(touched)
            stands = {id: model.stands for id, model in self._models.items()}
            self.problems = tuple(problems_of(self._directory.fleet, stands))
            self._whole = self._page = None
            self._version, self._ejected = self._directory.version, dict(ejected)
        return self._version

    @property
    def nodes(self) -> Iterable[NodeView]:
        """All that are not removed."""
        return (each.view for each in self._nodes.values())

    @property
    def models(self) -> Iterable[tuple[ModelView, ModelStanding]]:
        """All that are not deleted, by name, and how each stands."""
        return ((each.view, each.stands) for each in self._models.values())

    @property
    def unready(self) -> Iterable[ReplicaView]:
        """Replicas that are listed and don't answer."""
        return (each.view for each in self._replicas.values() if each.listed and not each.ready)

    @property
    def replica_states(self) -> dict[str, int]:
        """How many replicas that are listed stand how."""
        return Counter(each.state for each in self._replicas.values() if each.listed)

    def whole(self) -> bytes:
        """Members of a JSON object: `nodes`, `models`, `aliases` and `replicas`."""
        if self._whole is None:
            listed = (self._shape(each) for each in self._replicas.values() if each.listed)
            nodes = _list(map(self._node, self._nodes.values()))
            self._whole = _members(
                nodes=nodes, models=self._model_list(), aliases=self._alias_list(), replicas=_list(listed)
            )
        return self._whole

    def page(self) -> bytes:
        """The same for the first page: counts, and of each list what needs an eye before the others, up to a bound."""
        if self._page is None:
            fleet = self._directory.fleet
            lines = [self._lines_of(model) for model in self._own]
            counts: Counts = {
                "nodes": Counter(each.view.state for each in self._nodes.values()),
                "models": Counter(each.stands.state for each in self._models.values()),
                "replicas": {model: count for model, (count, _) in zip(self._own, lines, strict=True)},
            }
            shown = heapq.nsmallest(NODES_SHOWN, self._nodes.values(), key=_node_order)
            self._page = _members(
                counts=_encode(counts),
                nodes=_list(map(self._node, shown)),
                claims=_encode({each.view.id: claim_shape(fleet.assigned(each.view.id)) for each in shown}),
                models=self._model_list(),
                aliases=self._alias_list(),
                replicas=_list(line for count, line in lines if count),
            )
        return self._page

    def _follow_replicas(self) -> set[ModelId]:
        """Models whose replicas changed."""
        known, touched, fleet = self._replicas, set[ModelId](), self._directory.fleet
        for id, view in fleet.replicas.items():
            old = known.get(id)
            if old is None or old.view is not view:
                new = known[id] = _Replica(view)
                self._own.setdefault(view.model, {})[id] = new
                touched.add(view.model)
        if len(known) > len(fleet.replicas):
            for id in known.keys() - fleet.replicas.keys():
                model = known.pop(id).view.model
                self._own[model].pop(id)
                touched.add(model)
        return touched

    def _follow_ejected(self, ejected: Mapping[ReplicaId, str]) -> set[ModelId]:
        touched = set[ModelId]()
        for id, _ in self._ejected.items() ^ ejected.items():
            if (known := self._replicas.get(id)) is not None:
                known.shape = known.line = None
                touched.add(known.view.model)
        return touched

    def _follow_nodes(self) -> bool:
        """Whether a node bears another name than before, which its replicas' pieces tell."""
        known, renamed = self._nodes, False
        self._nodes = {}
        for id, view in self._directory.fleet.nodes.items():
            if view.removed:
                continue
            old = known.get(id)
            if old is None or old.view is not view:
                renamed = renamed or old is None or old.view.name != view.name
                old = _Node(view)
            self._nodes[id] = old
        return renamed

    def _forget_replicas(self) -> set[ModelId]:
        for each in self._replicas.values():
            each.shape = each.line = None
        return set(self._own)

    def _follow_models(self, touched: set[ModelId]) -> None:
        for id in touched:
            self._lines.pop(id, None)
            if not self._own.get(id, True):
                del self._own[id]
        known, self._models = self._models, {}
        for view in self._directory.served():
            old = known.get(view.id)
            if old is None or old.view is not view or view.id in touched:
                stands = standing(view, self._directory.replicas(view))
                if old is None or old.view is not view or old.stands != stands:
                    old = _Model(view, stands)
            self._models[view.id] = old

    def _model_list(self) -> bytes:
        created = self._directory.created
        for id, each in self._models.items():
            if each.shape is None:
                each.shape = _encode(model_shape(each.view, each.stands, created.get(id, 0.0)))
        return _list(each.shape or b"" for each in self._models.values())

    def _alias_list(self) -> bytes:
        return _list(_encode(alias_shape(view, self._stands)) for view in self._directory.aliases())

    def _stands(self, id: ModelId) -> tuple[ModelView, ModelStanding] | None:
        found = self._models.get(id)
        return None if found is None else (found.view, found.stands)

    def _lines_of(self, model: ModelId) -> tuple[int, bytes]:
        found = self._lines.get(model)
        if found is None:
            listed = [each for each in self._own[model].values() if each.listed]
            first = heapq.nsmallest(REPLICAS_SHOWN, listed, key=lambda each: (each.ready, each.view.number))
            found = self._lines[model] = len(listed), b",".join(map(self._line, first))
        return found

    def _node(self, each: _Node) -> bytes:
        if each.shape is None:
            each.shape = _encode(node_shape(each.view))
        return each.shape

    def _shape(self, each: _Replica) -> bytes:
        if each.shape is None:
            view = each.view
            shape = replica_shape(view, self._name(view), self._directory.fleet.nodes)
            shown: ShownReplica = {**shape, "shunned": self._ejected.get(view.id)}
            each.shape = _encode(shown)
        return each.shape

    def _line(self, each: _Replica) -> bytes:
        if each.line is None:
            view = each.view
            line = replica_line(view, self._name(view), self._directory.fleet.nodes)
            shown: ShownReplicaLine = {**line, "shunned": self._ejected.get(view.id)}
            each.line = _encode(shown)
        return each.line

    def _name(self, view: ReplicaView) -> str:
        model = self._directory.fleet.models.get(view.model)
        return model.name if model is not None else ""


def _node_order(each: _Node) -> tuple[bool, str]:
    return each.view.state == "healthy" and each.view.approved, each.view.name


def _list(pieces: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(pieces) + b"]"


def _members(**values: bytes) -> bytes:
    return b",".join(b'"%s":%s' % (name.encode(), value) for name, value in values.items())
