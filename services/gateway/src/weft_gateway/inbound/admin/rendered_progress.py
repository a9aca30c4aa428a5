"""What replicas wait for and hold, as JSON: a piece for each, made anew when its nodes said another thing of it."""

from dataclasses import dataclass

import msgspec
from weft_contracts.ids import ReplicaId
from weft_fleet import ReplicaView

from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.domain.progress_shapes import replica_progress
from weft_gateway.projections.directory import Directory

REPLICAS_SHOWN = 256
"""On the first page; those that wait for something before the others."""


@dataclass(frozen=True, slots=True)
class _Piece:
    made_of: tuple[object, ...]
    """A replica's view, its nodes' views and what they said: the same objects say the same."""
    waits: bool
    json: bytes
    """Empty: nothing is known of it."""


class RenderedProgress:
    """Kept from look to look."""

    def __init__(self, directory: Directory, board: ProgressBoard) -> None:
        self._directory = directory
        self._board = board
        self._versions = (-1, -1)
        self._pieces: dict[ReplicaId, _Piece] = {}

    def whole(self) -> bytes:
        """Of all replicas of which something is known, by id."""
        self._update()
        return _object(self._pieces)

    def page(self) -> bytes:
        """The same up to a bound."""
        self._update()
        if len(self._pieces) <= REPLICAS_SHOWN:
            return _object(self._pieces)
        first = sorted(self._pieces.items(), key=lambda each: (not each[1].waits, each[0]))
        return _object(dict(first[:REPLICAS_SHOWN]))

    def _update(self) -> None:
        versions = self._directory.version, self._board.version
        if versions == self._versions:
            return
        self._versions = versions
        fleet, before = self._directory.fleet, self._pieces
        self._pieces = {}
        for node in self._board.nodes():
            for id in fleet.assigned(node).assignments:
                view = fleet.replicas.get(id)
                if view is None or id in self._pieces:
                    continue
                made_of = self._made_of(view)
                known = before.get(id)
                same = known is not None and all(a is b for a, b in zip(known.made_of, made_of, strict=False))
                self._pieces[id] = known if known is not None and same else self._piece(view, made_of)

    def _made_of(self, view: ReplicaView) -> tuple[object, ...]:
        nodes = [member.node for member in view.members]
        return view, *(self._directory.fleet.nodes.get(node) for node in nodes), *map(self._board.of, nodes)

    def _piece(self, view: ReplicaView, made_of: tuple[object, ...]) -> _Piece:
        progress = replica_progress(self._directory.fleet, self._board, view)
        if progress is None:
            return _Piece(made_of, waits=False, json=b"")
        return _Piece(made_of, waits=bool(progress["about"]), json=msgspec.json.encode(progress))


def _object(pieces: dict[ReplicaId, _Piece]) -> bytes:
    known = ((id, piece.json) for id, piece in pieces.items() if piece.json)
    return b"{" + b",".join(b'"%s":%s' % (id.encode(), json) for id, json in known) + b"}"
