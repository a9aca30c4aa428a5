"""What the mirror writes step by step equals what it writes at once."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.facts.model import Deleted, Scaled, SpecAccepted, Unservable
from weft_contracts.facts.node import Approved, Assigned, Healthy, Joined, Removed, Unassigned, Unhealthy
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.request import DeployRequested, Fulfilled, Rejected
from weft_contracts.facts.run import Failed, Loading, Ready, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, NodeId, RequestId, TokenId, replica_id
from weft_contracts.subjects import model, node, replica, request, run
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.requests import Requests
from weft_gateway.projections.tables.mirror import Mirror
from weft_readmodel.changes import Changes
from weft_testing import HandLog

NODE, MODEL = NodeId("n-1"), ModelId("m-1")
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="t", decided_at=0.0, refusals={}, candidates=()
)
ONE, TWO = replica_id(MODEL, 1), replica_id(MODEL, 2)
MEMBER = Member(node=NODE, rank=0, devices=())
ADDRESSES = Addresses(host="127.0.0.1", http_port=1)
SAID = Incarnation("i")
STEPS: list[tuple[Any, Any]] = [
    (node(NODE), Joined(name="n", public_key="U", token=TokenId("t"), addresses=ADDRESSES)),
    (node(NODE), Approved(by="t")),
    (node(NODE), Healthy()),
    (node(NODE), Unhealthy(silent_for=5)),
    (node(NODE), Removed(why="x")),
    (model(MODEL), SpecAccepted(name="m", revision=1, digest="d", spec=SPEC)),
    (model(MODEL), Scaled(revision=1, add=(ONE,), why="w")),
    (model(MODEL), Scaled(revision=1, add=(TWO,), why="w")),
    (model(MODEL), Scaled(revision=1, retire=(ONE,), why="w")),
    (model(MODEL), Unservable(revision=1, reason="r")),
    (model(MODEL), Deleted()),
    (replica(ONE), Placed(model=MODEL, revision=1, epoch=1, members=(MEMBER,), receipt=RECEIPT)),
    (
        node(NODE),
        Assigned(
            replica=ONE, model=MODEL, model_name="m", revision=1, digest="d", epoch=1, members=(MEMBER,), spec=SPEC
        ),
    ),
    (node(NODE), Unassigned(replica=ONE, deadline_s=1, why="w")),
    (run(NODE, ONE), Loading(epoch=1, incarnation=SAID)),
    (run(NODE, ONE), Ready(epoch=1, incarnation=SAID, port=1, engine="simulated", engine_version="1")),
    (run(NODE, ONE), Failed(epoch=1, reason="f", permanent=False, starts=3)),
    (run(NODE, ONE), Stopped(epoch=1, why="retired")),
    (request(RequestId("q-1")), DeployRequested(name="m", spec=SPEC)),
    (request(RequestId("q-1")), Fulfilled(result={"a": "b"})),
    (request(RequestId("q-2")), DeployRequested(name="m", spec=SPEC)),
    (request(RequestId("q-2")), Rejected(status=422, reason="no")),
]


class Tables:
    """Tables in memory."""

    def __init__(self) -> None:
        self.rows: dict[Any, dict[str, Any]] = {}

    def write(self, changes: Changes) -> None:
        for table, keys in changes.gone.items():
            for key in keys:
                self.rows[table].pop(key, None)
        for table, keys in changes.only.items():
            kept = self.rows.get(table, {})
            self.rows[table] = {key: row for key, row in kept.items() if key in keys}
        for table, rows in changes.rows.items():
            for row in rows:
                found = row.model_dump()
                self.rows.setdefault(table, {})[found["id"]] = found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(STEPS) - 1), st.booleans()), max_size=60))
def test_rows_written_step_by_step_equal_rows_written_at_once(steps: list[tuple[int, bool]]) -> None:
    log, directory, requests = HandLog(), Directory(), Requests()
    log.listen(lambda commit: (directory.fold([commit]), requests.fold([commit]))[0])
    mirror, tables, written = Mirror(directory), Tables(), 0
    for place, flush in [(place, False) for place in (0, 1, 2, 5, 6)] + steps:
        log.given(*STEPS[place])
        if flush:
            tables.write(mirror.changes(requests.since(written)))
            written = directory.fleet.position
    tables.write(mirror.changes(requests.since(written)))
    at_once = Tables()
    at_once.write(Mirror(directory).changes(requests.since(0)))
    assert at_once.rows == tables.rows
