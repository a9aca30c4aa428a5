"""What a replica holds of the devices that it claims, in few words: `0.9 GiB of 1.2 GiB`. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft_client.units import size

if TYPE_CHECKING:
    from weft_client.api import DeviceUse


def in_words(devices: "Sequence[DeviceUse]") -> str:
    """Used of claimed, on all devices together; empty where nothing is known of it."""
    known = [each.used for each in devices if each.used is not None]
    if not known:
        return ""
    used = sum(known) if len(known) == len(devices) else None
    several = f" on {len(devices)} devices" if len(devices) > 1 else ""
    return f"{size(used)} of {size(sum(each.claimed for each in devices))}{several}"
