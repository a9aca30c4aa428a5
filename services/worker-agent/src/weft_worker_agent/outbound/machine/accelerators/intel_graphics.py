"""Tells the graphics of Intel's processors from its cards.

Intel's processors have theirs at PCI address 0000:00:02.0; every other address is a card's (Intel's own test tools
tell them so: igt-gpu-tools, `INTEGRATED_I915_GPU_PCI_ID` of lib/igt_device_scan.h). A virtual machine may be given a
card at that address, so where a driver names local memory, it is a card all the same: xe for each tile
(igt-gpu-tools, tests/intel/xe_sysfs_tile.c), Intel's own build of i915 for the card. The kernel's i915 names none.
"""

import contextlib
from pathlib import Path

_OF_THE_PROCESSOR = "0000:00:02.0"
_LOCAL_MEMORY = ("tile*/physical_vram_size_bytes", "drm/card*/lmem_total_bytes")


def is_integrated(address: str, root: Path = Path("/")) -> bool:
    """Whether Intel's device at a PCI address is a part of the processor; False where the address is not known."""
    return address == _OF_THE_PROCESSOR and not _local_memory(root / "sys/bus/pci/devices" / address)


def _local_memory(device: Path) -> int:
    """Bytes that the driver names; 0: none."""
    found = 0
    for pattern in _LOCAL_MEMORY:
        for file in sorted(device.glob(pattern)):
            with contextlib.suppress(OSError, ValueError):
                found += int(file.read_text())
    return found
