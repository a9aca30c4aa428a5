"""Labels that a node bears without being told."""

import pytest
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.node import Joined, Labelled, Rejoined
from weft_contracts.facts.values import Addresses, Backend, Device, Hardware, UnsizedDevice, Vendor
from weft_contracts.ids import NodeId, TokenId
from weft_contracts.subjects import machine, node
from weft_fleet.auto_labels import auto_labels, vram
from weft_testing.fleet_log import FleetLog

HERE = Addresses(host="127.0.0.1", http_port=1)
MIB = 1 << 20
ID = NodeId("n-a")


def device(index: int, vendor: Vendor, mib: int) -> Device:
    return Device(index=index, vendor=vendor, name="-", memory=mib * MIB)


def hardware(*devices: Device, unsized: tuple[UnsizedDevice, ...] = ()) -> Hardware:
    return Hardware(cpus=8, memory=1 << 36, devices=(device(0, "cpu", 1 << 16), *devices), unsized=unsized)


@pytest.mark.parametrize(
    ("mib", "label"),
    [
        (6144, None),
        (8188, "8GB"),  # RTX 4060
        (11264, "8GB"),  # RTX 2080 Ti
        (15360, "16GB"),  # T4
        (23028, "24GB"),  # A10
        (24564, "24GB"),  # RTX 4090
        (46068, "48GB"),  # L40S
        (81559, "80GB+"),  # H100
        (143771, "80GB+"),  # H200
    ],
)
def test_a_card_reaches_the_size_that_it_is_sold_under(mib: int, label: str | None) -> None:
    assert label == vram(mib * MIB)


def test_the_largest_accelerator_gives_the_labels() -> None:
    given = hardware(device(1, "intel", 15360), device(2, "nvidia", 24564), device(3, "amd", 24000))

    labels = auto_labels("a", given, (Backend(engine="vllm", version="1", vendors=("nvidia",)),))

    assert {"node.name": "a", "engine.vllm": "true", "gpu.vendor": "nvidia", "gpu.vram": "24GB"} == labels


def test_what_is_unknown_has_no_label() -> None:
    only_vulkan = hardware(unsized=(UnsizedDevice(vendor="amd", name="Radeon"),))

    assert {"node.name": "a"} == auto_labels("a", None, ())
    assert {"node.name": "a"} == auto_labels("a", hardware(), ())
    assert {"node.name": "a", "gpu.vendor": "amd"} == auto_labels("a", only_vulkan, ())


def test_automatic_labels_follow_the_machine_and_yield_to_what_admins_say() -> None:
    log = FleetLog()
    joined = Joined(name="a", public_key="UA", token=TokenId("t"), addresses=HERE, labels={"zone": "1"})
    log.add(node(ID), joined)
    assert {"node.name": "a", "zone": "1"} == log.fleet.nodes[ID].labels

    def report(*devices: Device) -> None:
        log.add(machine(ID), Reported(hardware=hardware(*devices), backends=(), builtins=(), agent_version="1"))

    report(device(1, "nvidia", 81559))
    assert "80GB+" == log.fleet.nodes[ID].labels["gpu.vram"]
    log.add(node(ID), Rejoined(addresses=HERE, labels={"zone": "2"}))
    log.add(node(ID), Labelled(labels={"gpu.vram": None, "node.name": "b"}))
    assert {"node.name": "b", "gpu.vendor": "nvidia", "zone": "2"} == log.fleet.nodes[ID].labels
    report()
    log.add(node(ID), Rejoined(addresses=HERE))
    assert {"node.name": "b"} == log.fleet.nodes[ID].labels


def test_a_workers_own_labels_claim_no_automatic_one_whether_the_machine_has_it_or_not() -> None:
    log = FleetLog()
    lies = {"node.name": "b", "gpu.vendor": "nvidia", "gpu.vram": "80GB+", "engine.vllm": "true", "zone": "1"}
    log.add(node(ID), Joined(name="a", public_key="UA", token=TokenId("t"), addresses=HERE, labels=lies))
    assert {"node.name": "a", "zone": "1"} == log.fleet.nodes[ID].labels


@pytest.mark.parametrize(
    ("memory", "label"),
    [(8 * 10**9 - 1, None), (8 * 10**9, "8GB"), (16 * 10**9 - 1, "8GB"), (80 * 10**9, "80GB+")],
)
def test_a_size_is_reached_with_its_last_byte(memory: int, label: str | None) -> None:
    assert label == vram(memory)


def test_of_two_accelerators_of_one_size_the_first_counts_and_no_processor_does() -> None:
    given = hardware(device(2, "amd", 24564), device(1, "nvidia", 24564))

    assert "nvidia" == auto_labels("a", given, ())["gpu.vendor"]


def test_an_accelerator_below_the_smallest_size_has_a_vendor_and_no_size() -> None:
    assert {"node.name": "a", "gpu.vendor": "intel"} == auto_labels("a", hardware(device(1, "intel", 4096)), ())


def test_a_name_that_is_longer_than_a_label_may_be_is_cut() -> None:
    assert "n" * 63 == auto_labels("n" * 80, None, ())["node.name"]
