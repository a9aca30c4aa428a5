"""What the machine must have that no wheel brings; what is missing is named with its remedy."""

import ctypes
import platform
import shutil
import sys
from pathlib import Path

from weft_client.failure import Failure
from weft_contracts import disk

from weft_embedded.state import State


def check() -> None:
    """Return if llama.cpp can run here. Raises Failure with the remedy."""
    if (missing := avx2_missing() or libgomp_missing()) is not None:
        raise Failure(missing)


def check_disk(state: State) -> None:
    """Return if a mesh can start on a state's disk. Raises Failure with what is needed and what is free."""
    if (short := disk_missing(state.folder, disk_free(state.folder))) is not None:
        raise Failure(short)


def disk_missing(folder: Path, free: int) -> str | None:
    """One sentence where a state's disk has too little for a start, a new state's too; else None."""
    return disk.shortage(folder, free, disk.needed(first=not State(folder).trust.exists()))


def disk_free(folder: Path) -> int:
    """What is free where a folder lies, or would be made: bytes."""
    there = next((each for each in (folder, *folder.parents) if each.exists()), Path("/"))
    return shutil.disk_usage(there).free


def avx2_missing() -> str | None:
    """What to do where the processor lacks AVX2; None where it has it, or needs none."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64") or has_avx2(_cpuinfo()):
        return None
    return (
        "this processor has no AVX2, which the llama.cpp engine needs; use a machine whose processor has it"
        " (Intel since 2013, AMD since 2015), or let a virtual machine show it its host's processor"
    )


def libgomp_missing() -> str | None:
    """What to do where libgomp is missing; None where it is there, or not needed."""
    if sys.platform != "linux":
        return None
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        return (
            "libgomp.so.1 is missing, which the llama.cpp engine needs; install it"
            " (Debian, Ubuntu: apt install libgomp1; Fedora: dnf install libgomp; Alpine: apk add libgomp)"
        )
    return None


def has_avx2(cpuinfo: str) -> bool:
    """Whether `/proc/cpuinfo` lists the flag. An empty text tells nothing and is let through."""
    flags = [line.split(":", 1)[1].split() for line in cpuinfo.splitlines() if line.startswith("flags")]
    return not flags or "avx2" in flags[0]


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
