"""Which reported devices what is said of a place on the PCI bus can be told of."""

from collections import Counter
from collections.abc import Iterable

from weft_contracts.facts.values import Hardware

from weft_worker_agent.domain.accelerators import Accelerator


def alone(hardware: Hardware, found: Iterable[Accelerator]) -> dict[str, int]:
    """The indexes of reported accelerators that share their address with nothing that was found, by address.

    Parts of one card share theirs, and what is said of the card is then of none of them.
    """
    times = Counter(one.pci for one in found)
    return {device.pci: device.index for device in hardware.devices if device.pci and times[device.pci] == 1}
