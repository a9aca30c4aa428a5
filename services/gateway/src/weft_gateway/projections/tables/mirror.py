"""What of the folded fleet has to be written: rows whose source changed since they were written last.

Views are frozen and replaced when they change, so identity tells what moved: a look at 10,000 replicas takes
a millisecond, and a row is only built for what did.
"""

from collections.abc import Iterable
from typing import Any

from sqlmodel import SQLModel
from weft_readmodel.changes import Changes

from weft_gateway.domain.model_state import standing
from weft_gateway.domain.request_view import RequestView
from weft_gateway.domain.shapes import model_shape, node_shape, replica_shape, request_shape
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.tables.rows import ModelRow, NodeRow, ReplicaRow, RequestRow

Table = type[SQLModel]


class Mirror:
    """Remembers which views the tables hold. Empty at first: the first look writes everything."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._written: dict[Table, dict[str, Any]] = {NodeRow: {}, ModelRow: {}, ReplicaRow: {}}
        self._first = True

    def changes(self, requests: Iterable[RequestView]) -> Changes:
        """Rows for what changed since the last look. What it returns must be written, or a new Mirror made."""
        fleet = self._directory.fleet
        rows: dict[Table, list[SQLModel]] = {NodeRow: [], ModelRow: [], ReplicaRow: []}
        gone: dict[Table, list[str]] = {}
        written = self._written
        for id, node in fleet.nodes.items():
            if written[NodeRow].get(id) is not node:
                written[NodeRow][id] = node
                rows[NodeRow].append(NodeRow(id=id, name=node.name, state=node.state, body=node_shape(node)))
        for id, replica in fleet.replicas.items():
            if written[ReplicaRow].get(id) is not replica:
                written[ReplicaRow][id] = replica
                model = fleet.models.get(replica.model)
                body = replica_shape(replica, model.name if model else "", fleet.nodes)
                rows[ReplicaRow].append(
                    ReplicaRow(id=id, model=replica.model, node=body["node"], state=replica.state, body=body)
                )
        for id, model in fleet.models.items():
            stands = standing(model, self._directory.replicas(model))
            if written[ModelRow].get(id) != (model.sequence, stands):
                written[ModelRow][id] = (model.sequence, stands)
                body = model_shape(model, stands, self._directory.created.get(id, 0.0))
                rows[ModelRow].append(ModelRow(id=id, name=model.name, state=stands.state, body=body))
        for table, there in ((NodeRow, fleet.nodes), (ModelRow, fleet.models), (ReplicaRow, fleet.replicas)):
            if len(there) != len(written[table]):
                gone[table] = [id for id in written[table] if id not in there]
                for id in gone[table]:
                    del written[table][id]
        only: dict[Table, list[str]] = {}
        if self._first:
            only = {table: list(written[table]) for table in written}
            self._first = False
        request_rows = [request_row(view) for view in requests]
        return Changes(rows={**rows, RequestRow: request_rows}, gone=gone, only=only)


def request_row(view: RequestView) -> RequestRow:
    """The row of a request."""
    return RequestRow(id=view.id, number=view.number, type=view.asked.type, state=view.state, body=request_shape(view))
