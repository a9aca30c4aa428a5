"""The NUMA nodes of this machine and of its devices, by Linux's own files. Elsewhere there are none.

Forms: the kernel's `Documentation/ABI/stable/sysfs-devices-node`, `Documentation/ABI/testing/sysfs-bus-pci`.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from weft_contracts.processors import listed

from weft_worker_agent.domain.numa import NumaNode, usable

_ROOT = Path("/")
_NODE = re.compile(r"node(\d{1,5})")
_TOTAL = re.compile(r"^Node \d+ MemTotal:\s*(\d+) kB$", re.MULTILINE)
_ALLOWED = re.compile(r"^Mems_allowed_list:\s*(\S+)$", re.MULTILINE)


def numa_nodes(parts: int = 1, root: Path = _ROOT) -> tuple[NumaNode, ...]:
    """The nodes that this worker may choose from for its engines; none where there is no choice.

    Of each only processors that this process may run on count, whoever bound it to them; memory only as far as its
    control group allows it. `parts`: workers that share the machine.
    """
    if not hasattr(os, "sched_getaffinity"):
        return ()
    return usable(_nodes(root), os.sched_getaffinity(0), _memories(root), _limit(root), parts)


def node_of(address: str, root: Path = _ROOT) -> int | None:
    """The node of the device at a PCI address; None: it isn't known, or the machine has no nodes (-1)."""
    with contextlib.suppress(OSError, ValueError):
        node = int((root / "sys/bus/pci/devices" / address / "numa_node").read_text())
        return node if address and node >= 0 else None
    return None


def _nodes(root: Path) -> Iterator[NumaNode]:
    """Those that can be read; the others count as absent."""
    with contextlib.suppress(OSError):
        for folder in sorted((root / "sys/devices/system/node").iterdir()):
            if named := _NODE.fullmatch(folder.name):
                with contextlib.suppress(OSError, ValueError):
                    total = _TOTAL.search((folder / "meminfo").read_text())
                    processors = listed((folder / "cpulist").read_text())
                    yield NumaNode(int(named[1]), processors, int(total[1]) << 10 if total is not None else 0)


def _memories(root: Path) -> frozenset[int] | None:
    with contextlib.suppress(OSError, ValueError):
        if (found := _ALLOWED.search((root / "proc/self/status").read_text())) is not None:
            return listed(found[1])
    return None


def _limit(root: Path) -> int | None:
    """Of the control group, in bytes; None: it sets none."""
    with contextlib.suppress(OSError, ValueError):
        return int((root / "sys/fs/cgroup/memory.max").read_text())
    return None
