"""Commits as the log has them, in the hand."""

from weft_contracts import subjects
from weft_contracts.commit import Recorded
from weft_contracts.facts import node, run
from weft_contracts.facts.fact import Fact
from weft_contracts.ids import CorrelationId, EventId, NodeId, ReplicaId
from weft_observer import Happened

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
FAILED = run.Failed(epoch=1, reason="no such file", permanent=True, starts=1)
HEALTHY = node.Healthy()


TRACEPARENT = f"00-{TRACE}-{SPAN}-01"


def commit(*facts: Fact, sequence: int = 7, at: float = 1_700_000_000.25, traceparent: str = TRACEPARENT) -> Recorded:
    one = NodeId("n-one")
    aggregate = subjects.run(one, ReplicaId("m-1-1")) if facts[0].kind == "run" else subjects.node(one)
    return Recorded(sequence, aggregate, facts, EventId("e-1"), CorrelationId("c-1"), None, "n-one", at, traceparent)


def happened(fact: Fact = FAILED) -> Happened:
    return Happened(fact, commit(fact), 0)
