"""The scripts that install: one that lies in a bundle, one that a gateway serves."""

import platform
import sys
from collections.abc import Sequence
from importlib.resources import files

from weft_embedded.bundle.contents import Listed


def machine() -> str:
    """This machine as a bundle names it, by which wheels fit it: system, processor, Python."""
    return f"{sys.platform}-{platform.machine()}-{sys.version_info.major}.{sys.version_info.minor}"


def beside() -> str:
    """Installs from the bundle that it lies in."""
    return _part("install.sh") + _part("install_beside.sh")


def from_gateway(authority: str, listed: Sequence[Listed], made_for: str) -> str:
    """Installs what a gateway serves, and joins its mesh. It names its files' digests, so its own covers them.

    Args:
        authority: the certificate (PEM) by which the gateway is known.
        made_for: the machine that the bundle's wheels of third parties are for; empty: it has none.
    """
    filled = _part("install_from_gateway.sh")
    said = {
        "@AUTHORITY@": authority.strip(),
        "@FILES@": "\n".join(f"{each.digest}  {each.name}" for each in listed),
        "@MACHINE@": made_for,
    }
    for mark, text in said.items():
        filled = filled.replace(mark, text)
    return _part("install.sh") + filled


def _part(name: str) -> str:
    return (files("weft_embedded.bundle") / name).read_text()
