"""What a replica holds of the devices that it claims, in few words: `0.9 GiB of 1.2 GiB`. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft_client.units import size

if TYPE_CHECKING:
    from weft_client.api import DeviceUse


def in_words(devices: "Sequence[DeviceUse]") -> str:
    """Used of claimed, on all devices together; what is claimed alone where it is not known; empty without a claim."""
    if not devices:
        return ""
    claimed = size(sum(each.claimed for each in devices))
    several = f" on {len(devices)} devices" if len(devices) > 1 else ""
    known = [each.used for each in devices if each.used is not None]
    if len(known) < len(devices):
        return f"{claimed} claimed{several}"
    return f"{size(sum(known))} of {claimed}{several}"
