"""Which reported accelerator is alone at its place on the PCI bus."""

from weft_contracts.facts.values import Device, Hardware
from weft_worker_agent.domain.accelerators import Accelerator
from weft_worker_agent.domain.device_addresses import alone

GIB = 1 << 30
PLACE = "0000:03:00.0"
PROCESSOR = Device(index=0, vendor="cpu", name="-", memory=GIB)


def hardware(*devices: Device) -> Hardware:
    return Hardware(cpus=4, memory=GIB, devices=(PROCESSOR, *devices))


def test_a_device_is_known_by_its_place_and_not_where_that_is_unknown_or_nothing_is_found_there() -> None:
    told = hardware(
        Device(index=3, vendor="amd", name="a", memory=GIB, pci=PLACE),
        Device(index=1, vendor="intel", name="b", memory=GIB, pci="0000:04:00.0"),
        Device(index=4, vendor="nvidia", name="c", memory=GIB),
        Device(index=5, vendor="nvidia", name="d", memory=GIB, pci="0000:05:00.0"),
    )
    found = [
        Accelerator("amd", 0, "a", GIB, pci=PLACE),
        Accelerator("intel", 0, "b", GIB, pci="0000:04:00.0"),
        Accelerator("nvidia", 0, "c", GIB),
    ]

    assert {PLACE: 3, "0000:04:00.0": 1} == alone(told, found)


def test_parts_of_one_card_share_its_place_also_where_only_one_of_them_is_used() -> None:
    told = hardware(Device(index=1, vendor="amd", name="a", memory=GIB, pci=PLACE))
    parts = [Accelerator("amd", number, "a", GIB, pci=PLACE) for number in range(2)]

    assert {} == alone(told, parts)
    assert {PLACE: 1} == alone(told, parts[:1])
