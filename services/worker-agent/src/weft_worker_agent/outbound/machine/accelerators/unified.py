"""Boards of NVIDIA's on which processor and accelerator share one memory: Jetson, Thor, GB10 (DGX Spark)."""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

_TEGRA = "nvidia,tegra"
_PRODUCTS = re.compile(r"DGX[ _]Spark|\bGB10\b", re.IGNORECASE)
_RELEASE = re.compile(r"R(\d+)\s*\(release\),\s*REVISION:\s*([\d.]+)")


@dataclass(frozen=True, slots=True)
class Board:
    """What the machine's own files say of it."""

    name: str
    driver: str | None = None
    """The release of its Linux for Tegra; None where there is none."""


def board(root: Path = Path("/")) -> Board | None:
    """This machine's board, if it is one of these: by device tree, Tegra release file or product name."""
    model = _text(root / "proc/device-tree/model")
    tegra = _TEGRA in _text(root / "proc/device-tree/compatible")
    release = _text(root / "etc/nv_tegra_release")
    if tegra or release:
        found = _RELEASE.search(release)
        return Board(model or "NVIDIA Tegra", f"R{found[1]}.{found[2]}" if found else None)
    product = _text(root / "sys/class/dmi/id/product_name")
    return Board(product) if _PRODUCTS.search(product) else None


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_bytes()[:4096].replace(b"\0", b" ").decode(errors="replace").strip()
    return ""
