"""What the scheduler tells of devices at /metrics."""

from prometheus_client import CollectorRegistry
from weft_contracts.facts.machine import PressureChanged
from weft_contracts.facts.node import Assigned, Cordoned
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec
from weft_contracts.subjects import machine, node
from weft_scheduler.inbound.device_metrics import DeviceMetrics
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")


class Told:
    def __init__(self, log: FleetLog) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(DeviceMetrics(lambda: log.fleet))

    def __call__(self, what: str, vendor: str = "nvidia") -> float | None:
        value = self.registry.get_sample_value(f"weft_devices_{what}_bytes", {"vendor": vendor})
        return None if value is None else value / GIB


def test_devices_are_added_up_by_vendor_with_what_is_claimed_used_by_others_and_left() -> None:
    log = FleetLog()
    told = Told(log)
    on = log.node("a", 80 * GIB, 80 * GIB)
    log.node("b", 40 * GIB, vendor="amd")
    assert (160, 160, 40) == (told("memory"), told("free"), told("memory", "amd"))
    of = log.model("x", SPEC, replicas=1)
    (id,) = log.fleet.models[of].replicas
    member = Member(node=on, rank=0, devices=(DeviceClaim(index=0, bytes=30 * GIB),))
    log.add(
        node(on),
        Assigned(replica=id, model=of, model_name="x", revision=1, digest="x-1", epoch=1, members=(member,), spec=SPEC),
    )
    log.add(machine(on), PressureChanged(device=1, bytes=10 * GIB))
    assert (30, 10, 120) == (told("claimed"), told("pressure"), told("free"))
    assert 2 == told.registry.get_sample_value("weft_devices", {"vendor": "nvidia"})


def test_a_node_that_takes_no_replicas_has_nothing_free() -> None:
    log = FleetLog()
    told = Told(log)
    on = log.node("a", 80 * GIB)
    assert 80 == told("free")
    log.add(node(on), Cordoned())
    assert (80, 0) == (told("memory"), told("free"))
