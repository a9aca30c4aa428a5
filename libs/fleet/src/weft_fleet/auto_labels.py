"""Labels that every node bears without being told: what selectors may ask of its hardware and engines."""

from collections.abc import Iterable

from weft_contracts.facts.values import Backend, Hardware

_OF_ENGINES = "engine."
_FIXED = frozenset({"node.name", "gpu.vendor", "gpu.vram"})
SIZES = ((80, "80GB+"), (48, "48GB"), (24, "24GB"), (16, "16GB"), (8, "8GB"))
"""GB are 10⁹ bytes: what a card of 24 GB reports lies between 24 × 10⁹ and 24 × 2³⁰."""
VALUE_LENGTH = 63


def auto_labels(name: str, hardware: Hardware | None, backends: Iterable[Backend]) -> dict[str, str]:
    """`node.name`, `engine.<engine>`, and of the accelerators `gpu.vendor` and `gpu.vram`.

    Of several accelerators the one with the most memory counts. What is unknown has no label.
    """
    found = {"node.name": name[:VALUE_LENGTH]}
    found.update({f"engine.{backend.engine}": "true" for backend in backends})
    if hardware is None:
        return found
    sized = [device for device in hardware.devices if device.vendor != "cpu"]
    if sized:
        largest = max(sized, key=lambda device: (device.memory, -device.index))
        found["gpu.vendor"] = largest.vendor
        if (size := vram(largest.memory)) is not None:
            found["gpu.vram"] = size
    elif hardware.unsized:
        found["gpu.vendor"] = hardware.unsized[0].vendor
    return found


def is_automatic(name: str) -> bool:
    """Whether only the mesh itself, or an admin, says what this label is: selectors believe it."""
    return name in _FIXED or name.startswith(_OF_ENGINES)


def vram(memory: int) -> str | None:
    """The largest of the sizes that a device with so many bytes reaches; None below the smallest."""
    return next((text for size, text in SIZES if memory >= size * 10**9), None)
