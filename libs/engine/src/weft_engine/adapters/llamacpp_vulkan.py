"""Which of Vulkan's devices llama.cpp takes: those that the replica claims, in the claim's order, and no other.

Vulkan counts devices in an order of its own, over all vendors, so the number that a vendor's tools give says nothing
here. They are known by their place on the PCI bus, or by a UUID that both tell alike, as NVIDIA's do.
"""

import ctypes
import logging
import os
import sys
from collections.abc import Sequence
from typing import Final

from weft_engine.adapters.vulkan_loader import LOADER, VulkanDevice, VulkanFailed, devices_of_loader
from weft_engine.launch import ClaimedDevice
from weft_engine.visible_devices import NotAddressable

VARIABLE: Final = "GGML_VK_VISIBLE_DEVICES"
"""llama.cpp reads it when it first looks for devices; what it names is taken, in this order, whatever it is."""
log = logging.getLogger("weft.engine")


def keep_to_claimed(devices: Sequence[ClaimedDevice]) -> None:
    """Set the variable where llama.cpp was built with Vulkan; before that looks for devices. Raises NotAddressable.

    Nothing claimed says nothing; the processor alone hides all of Vulkan's devices.
    """
    if not devices or not _is_loaded():
        return
    accelerators = [device for device in devices if device.vendor != "cpu"]
    seen: Sequence[VulkanDevice] = ()
    if accelerators:
        try:
            seen = devices_of_loader()
        except VulkanFailed as error:
            raise NotAddressable(f"Vulkan tells of no devices, and some are claimed: {error}") from None
    os.environ[VARIABLE] = ",".join(str(index) for index in indexes(accelerators, seen))
    names = [device.name for device in seen]
    log.info("vulkan", extra={"visible": os.environ[VARIABLE], "devices": names})


def indexes(claimed: Sequence[ClaimedDevice], seen: Sequence[VulkanDevice]) -> list[int]:
    """How Vulkan counts the claimed devices. Raises NotAddressable for one that it doesn't know.

    Two drivers may show one device; the first of them is taken.
    """
    found: list[int] = []
    for device in claimed:
        known = (at for at, each in enumerate(seen) if _is_same(device, each))
        index = next((at for at in known if at not in found), None)
        if index is None:
            there = ", ".join(f"{each.name} ({each.pci or each.uuid})" for each in seen) or "none"
            raise NotAddressable(
                f"the claimed {device.vendor} device {_called(device)} is none of Vulkan's, which are: {there}; its "
                "Vulkan driver may lack (mesa-vulkan-drivers), or its vendor's tool doesn't tell its PCI address"
            )
        found.append(index)
    return found


def _is_same(device: ClaimedDevice, seen: VulkanDevice) -> bool:
    if device.pci and seen.pci:
        return _place(device.pci) == _place(seen.pci)
    own = device.uuid.removeprefix("GPU-").replace("-", "").lower()
    return len(own) == len(seen.uuid) and own == seen.uuid


def _place(pci: str) -> tuple[int, ...]:
    """A domain may be written with more zeros."""
    return tuple(int(part, 16) for part in pci.replace(".", ":").split(":"))


def _called(device: ClaimedDevice) -> str:
    return device.pci or device.uuid or str(device.number)


def _is_loaded() -> bool:
    """Whether Vulkan's loader is in this process: llama.cpp's binding brings it where it was built with it."""
    if sys.platform != "linux":
        return False
    try:
        ctypes.CDLL(LOADER, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True
