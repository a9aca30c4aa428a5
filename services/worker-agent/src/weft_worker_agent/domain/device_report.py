"""From what the tools found to what the node reports: which devices, under which index."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from weft_contracts.facts.machine import Reported
from weft_contracts.facts.values import Device, Hardware, UnsizedDevice, Vendor, VramBudget

from weft_worker_agent.domain.accelerators import Accelerator, Findings
from weft_worker_agent.domain.device_choice import DeviceChoice


@dataclass(frozen=True, slots=True)
class Use:
    """What a worker's settings say of its accelerators."""

    choice: DeviceChoice = field(default_factory=DeviceChoice)
    budget: VramBudget | None = None
    parts: int = 1
    """Workers that share the machine: each has its part of every accelerator's memory."""
    simulated: tuple[Accelerator, ...] = ()
    """Made up, instead of those that there are; nobody shares them."""


def told(base: Reported, findings: Findings, use: Use, before: Reported | None) -> Reported:
    """The report with its accelerators.

    `base` has the processor as its only device. `before` is what the log was told last: a device keeps its index
    from there, because claims name it; and of a vendor whose tool is silent, all that was told stands.
    """
    earlier = before.hardware if before is not None else None
    parts = use.parts
    if use.simulated:
        findings, parts = Findings(use.simulated), 1
    used = use.choice.of(findings.accelerators)
    memory = base.hardware.memory
    budget = use.budget
    devices: list[Device] = []
    unsized: list[UnsizedDevice] = []
    for one in used:
        size = memory if one.unified else one.memory // parts if one.memory else None
        if size is None:
            unsized.append(UnsizedDevice(vendor=one.vendor, name=one.name, uuid=one.uuid, driver=one.driver))
            continue
        device = Device(
            index=0,
            vendor=one.vendor,
            name=one.name,
            memory=size,
            uuid=one.uuid,
            number=one.number,
            pci=one.pci,
            driver=one.driver,
            compute_capability=one.compute_capability,
            unified=one.unified,
            simulated=bool(use.simulated),
            budget=budget.of(size) if budget is not None else None,
        )
        devices.append(device)
    if earlier is not None:
        devices.extend(_carried(earlier, findings.silent, use))
        unsized.extend(each for each in earlier.unsized if each.vendor in findings.silent)
    idle = () if findings.silent else use.choice.idle(findings.accelerators)
    notes = (*findings.notes, *(f"WEFT_DEVICES names {text}, and there is no such accelerator" for text in idle))
    processor = base.hardware.devices
    numbered = indexed(devices, earlier.devices if earlier is not None else ())
    hardware = base.hardware.model_copy(
        update={"devices": (*processor, *numbered), "unsized": tuple(unsized), "notes": notes}
    )
    return base.model_copy(update={"hardware": hardware})


def _carried(earlier: Hardware, silent: Collection[Vendor], use: Use) -> Iterator[Device]:
    """What was told of vendors whose tools are silent now, as far as the settings still allow it."""
    for device in earlier.devices:
        if device.vendor in silent and not device.simulated:
            one = Accelerator(device.vendor, device.number or 0, device.name, device.memory, device.uuid)
            if use.choice.of((one,)):
                budget = use.budget.of(device.memory) if use.budget is not None else None
                yield device.model_copy(update={"budget": budget})


def indexed(devices: Iterable[Device], before: Iterable[Device]) -> tuple[Device, ...]:
    """The accelerators with their indexes: the one that a device had before, else the next above all known ones."""
    had = {_key(device): device.index for device in before if device.vendor != "cpu"}
    free = max(had.values(), default=0) + 1
    found: list[Device] = []
    for device in devices:
        index = had.get(_key(device))
        if index is None:
            index, free = free, free + 1
        found.append(device.model_copy(update={"index": index}))
    return tuple(sorted(found, key=lambda device: device.index))


def by_uuid(hardware: Hardware) -> Mapping[str, Device]:
    """The accelerators that a driver can be asked about."""
    return {device.uuid: device for device in hardware.devices if device.uuid}


def _key(device: Device) -> tuple[str, str]:
    """What tells a device from another over restarts: its UUID, or what its vendor counts it as."""
    return device.vendor, device.uuid or f"{device.number} {device.name}"
