"""Which accelerators code of a vendor sees in this process: those that the replica claims, and no other.

The variables are read when a vendor's runtime is loaded, so they are set before any engine is imported. They keep
engines apart that mean well; they are no wall.
"""

from collections.abc import Callable, Sequence
from typing import Final

from weft_contracts.facts.values import Vendor

from weft_engine.launch import ClaimedDevice


class NotAddressable(Exception):
    """A claimed device has neither number nor UUID, so nothing can be kept to it; the message is a sentence."""


def visibility(devices: Sequence[ClaimedDevice]) -> dict[str, str]:
    """The environment under which a process sees these devices alone, in this order. Raises NotAddressable.

    Without an accelerator among them nothing hides as well as no driver would: every vendor's devices are hidden that
    can be. With one, the variables of other vendors stay unset: ROCm's runtime heeds CUDA's variable as well.
    """
    accelerators = [device for device in devices if device.vendor != "cpu"]
    if not accelerators:
        return dict(_HIDDEN)
    found: dict[str, str] = {}
    for vendor, variables in _VARIABLES.items():
        if of_it := [device for device in accelerators if device.vendor == vendor]:
            found |= variables(of_it)
    return found


def _nvidia(devices: Sequence[ClaimedDevice]) -> dict[str, str]:
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": _uuids_or_numbers(devices)}


def _amd(devices: Sequence[ClaimedDevice]) -> dict[str, str]:
    """Its tools tell UUIDs in a form of their own, too; the runtime knows those that begin with `GPU-`."""
    known = all(device.uuid.startswith("GPU-") for device in devices)
    return {"ROCR_VISIBLE_DEVICES": _uuids_or_numbers(devices) if known else _numbers(devices)}


def _intel(devices: Sequence[ClaimedDevice]) -> dict[str, str]:
    return {"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE", "ZE_AFFINITY_MASK": _numbers(devices)}


def _ascend(devices: Sequence[ClaimedDevice]) -> dict[str, str]:
    """Its runtime takes numbers in ascending order alone."""
    return {"ASCEND_RT_VISIBLE_DEVICES": _numbers(sorted(devices, key=lambda device: device.number or 0))}


def _uuids_or_numbers(devices: Sequence[ClaimedDevice]) -> str:
    """One kind for all: a runtime that meets an entry it can't read stops there."""
    if all(device.uuid for device in devices):
        return ",".join(device.uuid for device in devices)
    return _numbers(devices)


def _numbers(devices: Sequence[ClaimedDevice]) -> str:
    nameless = [device for device in devices if device.number is None]
    if nameless:
        raise NotAddressable(f"the claimed {nameless[0].vendor} device has no number that its runtime knows")
    return ",".join(str(device.number) for device in devices)


_VARIABLES: Final[dict[Vendor, Callable[[Sequence[ClaimedDevice]], dict[str, str]]]] = {
    "nvidia": _nvidia,
    "amd": _amd,
    "intel": _intel,
    "ascend": _ascend,
}
"""Apple has one accelerator in a machine, and nothing to choose."""
_HIDDEN: Final = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
"""A number that no device has ends the list before its first. Intel's and Ascend's have no such value."""
