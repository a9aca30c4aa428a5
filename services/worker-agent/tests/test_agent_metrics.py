"""What a worker tells of its node at /metrics."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from prometheus_client import CollectorRegistry
from weft_contracts import subjects
from weft_contracts.facts import machine, run
from weft_contracts.facts import node as node_facts
from weft_contracts.facts.values import Device, Hardware
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_contracts.signals import MemorySaid, ReplicaLoad
from weft_testing import HandLog
from weft_worker_agent.domain.own_part import OwnPart, evolve
from weft_worker_agent.inbound.node_metrics import NodeMetrics

REPLICA = ReplicaId("m-x-1")
DEVICE = {"device": "0", "vendor": "nvidia", "device_name": "H100"}


class Told:
    def __init__(self, node: NodeId, log: HandLog, lease: Any = None, **more: Any) -> None:
        self.registry = CollectorRegistry()
        pressure, held, loads = more.get("pressure", {}), more.get("held", ()), more.get("loads", ())
        part = lambda: reduce(evolve, log.commits, OwnPart())  # noqa: E731 - what the log says at the scrape
        metrics = NodeMetrics(node, part, lambda: pressure, lambda: held, lambda: loads, lambda: lease)
        self.registry.register(metrics)

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"weft_{name}", labels)


def reported(log: HandLog, node: NodeId) -> None:
    hardware = Hardware(cpus=8, memory=100, devices=(Device(index=0, vendor="nvidia", name="H100", memory=80),))
    said = machine.Reported(hardware=hardware, backends=(), builtins=(), agent_version="1")
    log.given(subjects.machine(node), said)


def test_a_device_tells_its_memory_and_what_replicas_and_others_have_of_it(
    hand_log: HandLog, node: NodeId, assigned: Callable[..., node_facts.Assigned]
) -> None:
    reported(hand_log, node)
    hand_log.given(subjects.node(node), assigned())
    claimed = assigned().member(node).devices[0].bytes
    held = (MemorySaid(replica=REPLICA, device=0, used=7),)
    told = Told(node, hand_log, held=held, pressure={0: 3})
    assert (80, claimed, 7, 3) == tuple(
        told(f"node_device_{each}_bytes", **DEVICE) for each in ("memory", "claimed", "held", "pressure")
    )
    assert Told(node, hand_log)("node_device_pressure_bytes", **DEVICE) is None  # it is not known


def test_runs_are_counted_by_phase_and_engines_tell_their_load_under_their_models_name(
    hand_log: HandLog, node: NodeId, assigned: Callable[..., node_facts.Assigned]
) -> None:
    hand_log.given(subjects.node(node), assigned())
    hand_log.given(subjects.run(node, REPLICA), run.Loading(epoch=1, incarnation=Incarnation("i-1")))
    loads = (
        ReplicaLoad(replica=REPLICA, running=4, waiting=2, kv_used=0.5, steps=9),
        ReplicaLoad(replica=ReplicaId("m-gone-1"), running=1, waiting=0, kv_used=0, steps=1),
    )
    told = Told(node, hand_log, loads=loads)
    assert (1, 0) == (told("node_runs", phase="loading"), told("node_runs", phase="ready"))
    of = {"model": assigned().model_name, "replica": REPLICA}
    assert (4, 2, 0.5) == tuple(
        told(f"engine_{each}", **of) for each in ("running_requests", "waiting_requests", "kv_used_ratio")
    )
    assert 1 == sum(
        len(family.samples) for family in told.registry.collect() if family.name == "weft_engine_running_requests"
    )


def test_a_lease_tells_its_age_once_it_was_sent(hand_log: HandLog, node: NodeId) -> None:
    lease: Any = type("Lease", (), {"since": None, "expires_at": 0.0})()
    told = Told(node, hand_log, lease)
    assert (None, True) == (told("node_lease_age_seconds"), (told("node_credential_left_seconds") or 0) < 0)
    lease.since = 1.26
    assert 1.3 == told("node_lease_age_seconds")
    assert Told(node, hand_log)("node_credential_left_seconds") is None  # it has not joined yet
