"""This machine: what a mesh or a worker needs of it."""

import resource
import sys
from pathlib import Path

import psutil
from weft_client.units import size
from weft_contracts.disk import KEPT_FREE
from weft_embedded import prerequisites

from weft_cli.doctor.finding import Finding, ok, problem, warning

PYTHON = (3, 11)
DISK_LOW = 1 << 30
"""Bytes on the state's disk. What a mesh needs of it stands in `weft_contracts.disk`."""
MEMORY_LOW = 512 << 20
FILES_NEEDED = 1024


def examine(state: Path) -> list[Finding]:
    """Python, processor, libraries, disk, memory, descriptors."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    return [
        python(sys.version_info[:2], version),
        needed("processor", prerequisites.avx2_missing(), "has what llama.cpp needs (AVX2)"),
        needed("libgomp", prerequisites.libgomp_missing(), "libgomp is there"),
        disk(state, prerequisites.disk_free(state)),
        memory(int(psutil.virtual_memory().available)),
        files(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    ]


def python(version: tuple[int, ...], text: str) -> Finding:
    if version < PYTHON:
        return problem(
            "machine", "python", f"Python {text}; Weft needs 3.11 or newer", "set WEFT_PYTHON to a newer one"
        )
    return ok("machine", "python", f"Python {text}")


def needed(name: str, missing: str | None, found: str) -> Finding:
    """Something without which llama.cpp can't run; `missing` names it with its remedy behind a semicolon."""
    if missing is None:
        return ok("machine", name, found)
    says, _, do = missing.partition("; ")
    return problem("machine", name, says, do)


def disk(state: Path, free: int) -> Finding:
    if (short := prerequisites.disk_missing(state, free)) is not None:
        says, _, do = short.partition("; ")
        return problem("machine", "disk", says, do)
    says = f"{size(free)} free where {state} lies"
    if free < DISK_LOW:
        most = f"; the log takes nothing more below {size(KEPT_FREE)}"
        return warning("machine", "disk", says + most, "free some, or keep the state elsewhere: --state DIR")
    return ok("machine", "disk", says)


def memory(available: int) -> Finding:
    says = f"{size(available)} of memory available"
    if available < MEMORY_LOW:
        return warning("machine", "memory", says, "end other programs, or remove a model: weft remove MODEL")
    return ok("machine", "memory", says)


def files(limit: int) -> Finding:
    """`limit` is the soft limit of open files; -1: none."""
    if 0 <= limit < FILES_NEEDED:
        return warning(
            "machine", "open files", f"at most {limit} open files a process", f"raise it: ulimit -n {FILES_NEEDED * 4}"
        )
    return ok("machine", "open files", "unlimited" if limit < 0 else f"{limit} a process")
