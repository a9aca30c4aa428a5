"""What the registry tells of the mesh at /metrics."""

from typing import Any

from prometheus_client import CollectorRegistry
from weft_contracts.facts.mesh import BrakeSet
from weft_contracts.facts.node import Joined, Removed, WentOffline
from weft_contracts.facts.values import Addresses
from weft_contracts.ids import NodeId, TokenId
from weft_contracts.subjects import MESH, node
from weft_eventlog import LogSize
from weft_registry.domain.failure_detector import FailureDetector, Timeouts
from weft_registry.inbound.mesh_metrics import NODES_TOLD, MeshMetrics
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
SIZE = LogSize(last_sequence=9, bytes=5, limit=GIB, copies=3, current=2, stored=7, storage_limit=0)


class Told:
    def __init__(self, log: FleetLog, silences: dict[NodeId, float], size: LogSize | None = SIZE) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(MeshMetrics(lambda: log.fleet, lambda: silences, lambda: size))

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"weft_{name}", labels)


def offline(log: FleetLog, id: NodeId) -> None:
    fields: dict[str, Any] = {"silent_for": 8.0} if "silent_for" in WentOffline.model_fields else {}
    log.add(node(id), WentOffline(**fields))


def test_nodes_are_counted_by_state_and_removed_ones_not_at_all() -> None:
    log = FleetLog()
    told = Told(log, {})
    one, two, three = (log.node(name, GIB) for name in ("a", "b", "c"))
    assert 3 == told("nodes", state="healthy")
    offline(log, one)
    log.add(node(two), Removed(why="x"))
    assert (1, 1, 0) == tuple(told("nodes", state=state) for state in ("healthy", "offline", "cut_off"))
    assert told("nodes", state="removed") is None
    assert three in log.fleet.nodes


def test_a_node_that_nobody_approved_is_told() -> None:
    log = FleetLog()
    addresses = Addresses(host="127.0.0.1", http_port=1)
    joined = Joined(name="new", public_key="U", token=TokenId("t"), addresses=addresses)
    told = Told(log, {})
    assert 0 == told("nodes_to_approve")
    log.add(node(NodeId("n-new")), joined)
    assert (1, 1) == (told("nodes_to_approve"), told("nodes", state="pending"))


def test_the_brake_is_told_as_long_as_it_is_set() -> None:
    log = FleetLog()
    told = Told(log, {})
    assert 0 == told("brake")
    log.add(MESH, BrakeSet(silent=5, healthy_before=6))
    assert 1 == told("brake")


def test_each_nodes_silence_is_told_up_to_a_bound() -> None:
    log = FleetLog()
    ids = [log.node(str(number), GIB) for number in range(3)]
    told = Told(log, {ids[0]: 1.26, ids[1]: 70.0})
    assert (1.3, 70) == tuple(
        told("node_silence_seconds", node=id, node_name=str(number)) for number, id in enumerate(ids[:2])
    )
    assert told("node_silence_seconds", node=ids[2], node_name="2") is None
    assert NODES_TOLD >= 3000


def test_the_logs_size_is_told_while_it_is_known() -> None:
    told = Told(FleetLog(), {})
    assert (9, 5, GIB, 2, 3) == tuple(
        told(f"log_{each}") for each in ("last_sequence", "bytes", "limit_bytes", "copies", "copies_wanted")
    )
    assert told("log_storage_limit_bytes") is None  # none is set
    assert Told(FleetLog(), {}, None)("log_bytes") is None


def test_a_sign_of_life_counts_from_the_moment_it_was_heard_also_while_no_silence_is_judged() -> None:
    detector = FailureDetector.begin(100.0, Timeouts())
    heard, unheard = NodeId("n-a"), NodeId("n-b")
    detector.renew(heard, 101.0)
    assert (4.0, None) == (detector.since(heard, 105.0), detector.since(unheard, 105.0))
    assert detector.silence(heard, 105.0) is None
