"""What a unit lets its processes do. Each way out of the sandbox is here because something of Weft needs it."""

import grp
from collections.abc import Sequence
from typing import Literal

from weft_cli.systemd.unit_file import Lines

Runs = Literal["engines", "services", "server"]
"""`engines` use accelerators and make code at run time; `services` are Weft's own; `server` is NATS alone."""
_GPU_GROUPS = ("video", "render")
_GPU_DEVICES = ("char-drm", "char-kfd", "char-nvidia*", "char-accel", "/dev/dxg")
"""DRM for all vendors, AMD's compute driver, NVIDIA's own, accelerators that are no GPUs, WSL's."""

_FOR_ALL: Lines = (
    ("NoNewPrivileges", "yes"),
    ("UMask", "0077"),
    ("LockPersonality", "yes"),
    ("RestrictNamespaces", "yes"),
    ("RestrictRealtime", "yes"),
    ("RestrictSUIDSGID", "yes"),
    # Netlink: which addresses this machine has.
    ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX AF_NETLINK"),
    ("SystemCallArchitectures", "native"),
    ("SystemCallFilter", "@system-service @pkey"),
    # Refused calls are told, as on a kernel that lacks them: engines ask for some that they can do without.
    ("SystemCallErrorNumber", "EPERM"),
    # A core dump of the gateway or of an engine holds secrets and prompts.
    ("LimitCORE", "0"),
    ("LimitNOFILE", "65536"),
    # What the kernel kills for want of memory is an engine: the worker starts it anew, the others run on.
    ("OOMPolicy", "continue"),
)
_AS_ROOT_SETS_UP: Lines = (
    ("ProtectSystem", "strict"),
    ("PrivateTmp", "yes"),
    ("ProtectClock", "yes"),
    ("ProtectControlGroups", "yes"),
    ("ProtectHostname", "yes"),
    ("ProtectKernelLogs", "yes"),
    ("ProtectKernelModules", "yes"),
    ("ProtectKernelTunables", "yes"),
    ("ProtectProc", "invisible"),
    ("RemoveIPC", "yes"),
    ("ManagedOOMPreference", "avoid"),
)


def of_user() -> Lines:
    """Of a unit of a user's own manager, which has no right to more."""
    return _FOR_ALL


def of_system(*, home: str, writes: Sequence[str], runs: Runs, low_port: bool) -> Lines:
    """Of a unit of the system.

    Args:
        home: `ProtectHome`.
        writes: folders besides the state's.
        runs: what it is that runs in it.
        low_port: whether it listens below 1024.
    """
    right = "CAP_NET_BIND_SERVICE" if low_port else ""
    found: list[tuple[str, str]] = [*_FOR_ALL, *_AS_ROOT_SETS_UP, ("ProtectHome", home)]
    found += [("CapabilityBoundingSet", right), ("AmbientCapabilities", right)]
    found += [("ReadWritePaths", each) for each in writes]
    if runs != "engines":
        sealed = [("MemoryDenyWriteExecute", "yes")] if runs == "server" else []
        return (*found, ("PrivateDevices", "yes"), *sealed)
    groups = [name for name in _GPU_GROUPS if _there(name)]
    found += [("SupplementaryGroups", " ".join(groups))] if groups else []
    found += [("DevicePolicy", "closed"), *(("DeviceAllow", f"{each} rw") for each in _GPU_DEVICES)]
    # Weights are kept in memory, and cards read from it.
    return (*found, ("LimitMEMLOCK", "infinity"))


def _there(group: str) -> bool:
    """systemd starts no unit whose groups don't exist."""
    try:
        return bool(grp.getgrnam(group))
    except KeyError:
        return False
