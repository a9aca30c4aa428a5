"""Where packages come from: the operator's settings, handed to the installer in its environment alone."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from weft_worker_agent.outbound.supervisor.environment import INSTALL_SOURCES, PROGRAMS, chosen

_DROPPED = ("PYTHONPATH", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class PackageSources:
    """Where the installer looks. Empty: as the environment's variables of uv or pip say, else the public index."""

    index: str = field(default="", repr=False)
    find_links: str = field(default="", repr=False)
    """Folders or pages, with commas or spaces between."""
    offline: Path | None = None
    """A folder with all that is needed: nothing else is asked."""

    def own_index(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Whether an operator named an index, or a folder that stands for one."""
        said = chosen(INSTALL_SOURCES, environ)
        names = ("UV_INDEX", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
        return bool(self.offline or self.index or any(said.get(name) for name in names))

    def environment(self, cache: Path, *, find_links: bool, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """What the installer gets, and nothing else. `find_links`: whether the recipe lets them be looked at."""
        given = {name: value for name, value in chosen(PROGRAMS, environ).items() if name not in _DROPPED}
        given |= {
            "UV_CACHE_DIR": str(cache),
            "UV_NO_CONFIG": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "NO_COLOR": "1",
            "LC_ALL": "C.UTF-8",
        }
        if self.offline is not None:
            return given | {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(self.offline), "UV_OFFLINE": "1"}
        said = chosen(INSTALL_SOURCES, environ)
        for name, value in said.items():
            if not name.startswith("PIP_"):
                given[name] = value
        _unless_said(given, "UV_DEFAULT_INDEX", self.index or said.get("PIP_INDEX_URL", ""), over=bool(self.index))
        _unless_said(given, "UV_INDEX", said.get("PIP_EXTRA_INDEX_URL", ""))
        _unless_said(given, "SSL_CERT_FILE", said.get("PIP_CERT", ""))
        links = self.find_links or said.get("PIP_FIND_LINKS", "")
        _unless_said(given, "UV_FIND_LINKS", ",".join(links.replace(",", " ").split()), over=bool(self.find_links))
        if not find_links:
            given.pop("UV_FIND_LINKS", None)
        return given


def _unless_said(given: dict[str, str], name: str, value: str, *, over: bool = False) -> None:
    if value and (over or not given.get(name)):
        given[name] = value
