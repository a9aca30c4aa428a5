"""Which of Vulkan's devices a replica's claim means, whatever order Vulkan counts them in."""

from typing import Any

import pytest
from weft_engine.adapters.llamacpp_vulkan import indexes
from weft_engine.adapters.vulkan_loader import VulkanDevice
from weft_engine.launch import ClaimedDevice
from weft_engine.visible_devices import NotAddressable

UUID = "6f1b0c5a3d2e4f709a81b2c3d4e5f607"
CARD = VulkanDevice("a card", 0x1002, "00" * 16, "0000:03:00.0")
OTHER = VulkanDevice("another card", 0x1002, "01" * 16, "0000:83:00.0")
GRAPHICS = VulkanDevice("the processor's graphics", 0x8086, "02" * 16, "0000:00:02.0")
WITH_UUID = VulkanDevice("a card of NVIDIA's", 0x10DE, UUID, "")
SOFTWARE = VulkanDevice("llvmpipe", 0x10005, "03" * 16, "")


def claimed(number: int, vendor: Any = "amd", **known: str) -> ClaimedDevice:
    return ClaimedDevice(vendor=vendor, number=number, bytes=1, **known)


def test_devices_are_known_by_their_place_on_the_bus_in_the_claims_order_and_not_by_their_vendors_number() -> None:
    seen = [GRAPHICS, OTHER, SOFTWARE, CARD]
    one, two = claimed(0, pci="0000:03:00.0"), claimed(1, pci="0000:83:00.0")
    assert [3, 1] == indexes([one, two], seen)
    assert [1, 3] == indexes([two, one], seen)
    assert [0] == indexes([claimed(0, "intel", pci="0000:00:02.0")], seen)


def test_a_domain_may_be_written_with_more_zeros() -> None:
    assert [0] == indexes([claimed(0, pci="00000000:03:00.0")], [CARD])


def test_devices_are_known_by_a_uuid_that_both_tell_alike() -> None:
    uuid = f"GPU-{UUID[:8]}-{UUID[8:12]}-{UUID[12:16]}-{UUID[16:20]}-{UUID[20:].upper()}"
    assert [1] == indexes([claimed(0, "nvidia", uuid=uuid)], [CARD, WITH_UUID])


def test_of_two_drivers_that_show_one_device_the_first_is_taken() -> None:
    assert [1] == indexes([claimed(0, pci="0000:03:00.0")], [GRAPHICS, CARD, CARD._replace(name="by another driver")])


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(claimed(0, pci="0000:04:00.0"), id="another place"),
        pytest.param(claimed(0, pci="0000:04:00.0", uuid="00" * 16), id="the place decides, where both tell it"),
        pytest.param(claimed(0, uuid="35ff74a1-0000-1000-80ac-0d5e9f1b7a42"), id="a UUID of its tool's own"),
        pytest.param(claimed(0, uuid="00"), id="a part of a UUID"),
        pytest.param(claimed(0), id="a number alone"),
    ],
)
def test_a_device_that_vulkan_does_not_know_is_refused_and_no_other_is_taken(device: ClaimedDevice) -> None:
    with pytest.raises(NotAddressable, match=r"is none of Vulkan's, which are: a card \(0000:03:00.0\); its Vulkan"):
        indexes([device], [CARD])


def test_no_device_is_taken_twice() -> None:
    with pytest.raises(NotAddressable):
        indexes([claimed(0, pci="0000:03:00.0"), claimed(0, pci="0000:03:00.0")], [CARD])
