"""What `/metrics` of the scheduler tells of what may be placed on: the devices of all nodes, by vendor.

Each node's own devices are told by its worker: one series of each here would be a page of 24,000 lines at 1,000 nodes.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from weft_fleet import Fleet

_OF = ("vendor",)


class DeviceMetrics(Collector):
    """Adds up at a scrape what changed since the last: nothing while the log stands still (`bench/metrics.py`)."""

    def __init__(self, fleet: Callable[[], Fleet]) -> None:
        self._fleet = fleet
        self._position = -1
        self._families: tuple[Metric, ...] = ()

    def describe(self) -> Iterable[Metric]:
        """Nothing is looked up when it is registered."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """As it stands."""
        fleet = self._fleet()
        if fleet.position != self._position:
            self._families = tuple(_families(fleet))
            self._position = fleet.position
        yield from self._families


def _families(fleet: Fleet) -> Iterable[Metric]:
    devices, memory, claimed, pressure, open_ = (Counter[str]() for _ in range(5))
    for node in fleet.nodes.values():
        if node.removed or node.hardware is None:
            continue
        claims = fleet.claims(node.id)
        for device in node.hardware.devices:
            its, used = claims.get(device.index, 0), node.pressure.get(device.index, 0)
            most = device.memory if device.budget is None else min(device.budget, device.memory)
            devices[device.vendor] += 1
            memory[device.vendor] += device.memory
            claimed[device.vendor] += its
            pressure[device.vendor] += used
            if node.takes_replicas:
                open_[device.vendor] += max(0, min(most, device.memory - used) - its)
    told = (
        ("weft_devices", "Devices of the mesh's nodes", devices),
        ("weft_devices_memory_bytes", "Their memory", memory),
        ("weft_devices_claimed_bytes", "That replicas claim of it, by the log", claimed),
        ("weft_devices_pressure_bytes", "That others than replicas use of it, as nodes say", pressure),
        ("weft_devices_free_bytes", "That replicas may still claim, on nodes that take any", open_),
    )
    for name, what, counts in told:
        family = GaugeMetricFamily(name, f"{what}, by vendor", labels=_OF)
        for vendor in sorted(devices):
            family.add_metric((vendor,), counts[vendor])
        yield family
