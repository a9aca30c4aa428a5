"""Where a device sits on the PCI bus, as the system's own files name it."""

import re

_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", re.IGNORECASE)


def pci_address(text: str | None) -> str:
    """`0000:3b:00.0` for what a tool says: NVML has a domain of eight digits and capitals; empty: it is no address."""
    found = _ADDRESS.fullmatch((text or "").strip())
    if found is None:
        return ""
    domain, bus, device, function = found.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function}".lower()
