"""Asks Vulkan's loader for its devices, in the order in which every program of this process gets them."""

import ctypes as c
from typing import Any, ClassVar, Final, NamedTuple

LOADER: Final = "libvulkan.so.1"
_MOST = 64
_VERSION_1_1 = 1 << 22 | 1 << 12
_APPLICATION, _INSTANCE = 0, 1
_PROPERTIES, _IDS, _PCI = 1000059001, 1000071004, 1000212000
"""VkStructureType of what is asked."""
_PCI_EXTENSION = b"VK_EXT_pci_bus_info"


class VulkanFailed(Exception):
    """The loader gives no answer; the message is a sentence."""


class VulkanDevice(NamedTuple):
    """One device, as its driver tells of it."""

    name: str
    vendor: int
    """PCI vendor id, or one that Khronos gave."""
    uuid: str
    """32 hexadecimal digits"""
    pci: str
    """`0000:4d:00.0`; empty: not told"""


class _Application(c.Structure):
    _fields_: ClassVar = [
        ("kind", c.c_uint32),
        ("next", c.c_void_p),
        ("name", c.c_char_p),
        ("version", c.c_uint32),
        ("engine", c.c_char_p),
        ("engine_version", c.c_uint32),
        ("api", c.c_uint32),
    ]


class _Instance(c.Structure):
    _fields_: ClassVar = [
        ("kind", c.c_uint32),
        ("next", c.c_void_p),
        ("flags", c.c_uint32),
        ("application", c.POINTER(_Application)),
        ("layers", c.c_uint32),
        ("layer_names", c.c_void_p),
        ("extensions", c.c_uint32),
        ("extension_names", c.c_void_p),
    ]


class _Extension(c.Structure):
    _fields_: ClassVar = [("name", c.c_char * 256), ("version", c.c_uint32)]


class _Ids(c.Structure):
    _fields_: ClassVar = [
        ("kind", c.c_uint32),
        ("next", c.c_void_p),
        ("device", c.c_uint8 * 16),
        ("driver", c.c_uint8 * 16),
        ("luid", c.c_uint8 * 8),
        ("mask", c.c_uint32),
        ("luid_valid", c.c_uint32),
    ]


class _Place(c.Structure):
    _fields_: ClassVar = [
        ("kind", c.c_uint32),
        ("next", c.c_void_p),
        ("domain", c.c_uint32),
        ("bus", c.c_uint32),
        ("device", c.c_uint32),
        ("function", c.c_uint32),
    ]


class _Properties(c.Structure):
    """VkPhysicalDeviceProperties2; its limits are room alone, and more than any version has had."""

    _fields_: ClassVar = [
        ("kind", c.c_uint32),
        ("next", c.c_void_p),
        ("api", c.c_uint32),
        ("driver", c.c_uint32),
        ("vendor", c.c_uint32),
        ("device", c.c_uint32),
        ("type", c.c_int32),
        ("name", c.c_char * 256),
        ("limits", c.c_uint64 * 256),
    ]


def devices_of_loader() -> tuple[VulkanDevice, ...]:
    """All devices. Loads their drivers, which takes a part of a second. Raises VulkanFailed."""
    try:
        vulkan = c.CDLL(LOADER)
    except OSError as error:
        raise VulkanFailed(f"{LOADER} can't be loaded ({error})") from None
    application = _Application(kind=_APPLICATION, api=_VERSION_1_1)
    asked = _Instance(kind=_INSTANCE, application=c.pointer(application))
    instance = c.c_void_p()
    if status := vulkan.vkCreateInstance(c.byref(asked), None, c.byref(instance)):
        raise VulkanFailed(f"vkCreateInstance answers {status}: no driver of Vulkan is installed, or none that works")
    try:
        number = c.c_uint32(_MOST)
        handles = (c.c_void_p * _MOST)()
        status = vulkan.vkEnumeratePhysicalDevices(instance, c.byref(number), handles)
        if status < 0:
            raise VulkanFailed(f"vkEnumeratePhysicalDevices answers {status}")
        return tuple(_told(vulkan, c.c_void_p(handle)) for handle in handles[: number.value])
    finally:
        vulkan.vkDestroyInstance(instance, None)


def _told(vulkan: Any, handle: c.c_void_p) -> VulkanDevice:
    place = _Place(kind=_PCI)
    tells_place = _has(vulkan, handle, _PCI_EXTENSION)
    ids = _Ids(kind=_IDS, next=c.addressof(place) if tells_place else None)
    properties = _Properties(kind=_PROPERTIES, next=c.addressof(ids))
    vulkan.vkGetPhysicalDeviceProperties2(handle, c.byref(properties))
    pci = f"{place.domain:04x}:{place.bus:02x}:{place.device:02x}.{place.function:x}" if tells_place else ""
    return VulkanDevice(properties.name.decode(errors="replace"), properties.vendor, bytes(ids.device).hex(), pci)


def _has(vulkan: Any, handle: c.c_void_p, extension: bytes) -> bool:
    number = c.c_uint32()
    vulkan.vkEnumerateDeviceExtensionProperties(handle, None, c.byref(number), None)
    found = (_Extension * number.value)()
    vulkan.vkEnumerateDeviceExtensionProperties(handle, None, c.byref(number), found)
    return any(each.name == extension for each in found[: number.value])
