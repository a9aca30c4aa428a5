"""What `/metrics` of the registry tells of the mesh: its nodes by state and how long each has been silent, the brake,
and the log's size. Other services tell of themselves alone, so that a mesh's figures stand in one place.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from weft_contracts.ids import NodeId
from weft_contracts.states import NodeState
from weft_eventlog import LogSize
from weft_fleet import Fleet

NODES_TOLD = 5000
"""Nodes whose silence is told one by one; of more, the first that joined."""


class MeshMetrics(Collector):
    """Looks at the fleet at each scrape: 6 ms for 1,000 nodes (`bench/metrics.py`)."""

    def __init__(
        self,
        fleet: Callable[[], Fleet],
        silences: Callable[[], Mapping[NodeId, float]],
        log: Callable[[], LogSize | None],
    ) -> None:
        """`silences`: seconds since each node's last sign of life; `log`: as it was last seen."""
        self._fleet = fleet
        self._silences = silences
        self._log = log

    def describe(self) -> Iterable[Metric]:
        """Nothing is looked up when it is registered."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """As it stands."""
        states, waiting = Counter[str](), 0
        for node in self._fleet().nodes.values():
            states[node.state] += 1
            waiting += node.state == "pending" and not node.approved
        nodes = GaugeMetricFamily("weft_nodes", "Nodes by state", labels=("state",))
        for state in get_args(NodeState):
            if state != "removed":
                nodes.add_metric((state,), states[state])
        yield nodes
        yield GaugeMetricFamily("weft_nodes_to_approve", "Nodes that wait for an admin's approval", value=waiting)
        yield GaugeMetricFamily(
            "weft_brake", "Whether the brake is set: nothing is replaced", value=self._fleet().brake is not None
        )
        yield self._silence()
        log = self._log()
        if log is not None:
            yield from _log_families(log)

    def _silence(self) -> Metric:
        silence = GaugeMetricFamily(
            "weft_node_silence_seconds",
            "Since a node's last sign of life, its lease; of nodes that are approved",
            labels=("node", "node_name"),
        )
        nodes = self._fleet().nodes
        for id, seconds in list(self._silences().items())[:NODES_TOLD]:
            silence.add_metric((id, nodes[id].name), round(seconds, 1))
        return silence


def _log_families(log: LogSize) -> Iterable[Metric]:
    yield GaugeMetricFamily("weft_log_last_sequence", "Of the event log", value=log.last_sequence)
    yield GaugeMetricFamily("weft_log_bytes", "That the event log holds", value=log.bytes)
    if log.limit:
        yield GaugeMetricFamily("weft_log_limit_bytes", "At which the event log takes nothing more", value=log.limit)
    yield GaugeMetricFamily("weft_log_copies", "Copies of the event log that are up to date", value=log.current)
    yield GaugeMetricFamily("weft_log_copies_wanted", "Copies that the event log should have", value=log.copies)
    yield GaugeMetricFamily("weft_log_storage_bytes", "That all streams of the mesh hold on disk", value=log.stored)
    if log.storage_limit:
        yield GaugeMetricFamily("weft_log_storage_limit_bytes", "That they may hold on disk", value=log.storage_limit)
