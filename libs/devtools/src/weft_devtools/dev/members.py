"""The members of the source tree and who stands on whom, as their `pyproject.toml`s say: a file that can't be parsed
for the moment, as one that is being written, changes nothing in it.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weft_client.failure import Failure

FOLDERS = ("libs", "services", "models")


@dataclass(frozen=True, slots=True)
class Member:
    """One package of the workspace."""

    name: str
    """As it is installed: `weft-scheduler`."""
    folder: str
    """Below the root: `services/scheduler`."""
    needs: frozenset[str]
    """Names of the members that it declares."""

    @property
    def service(self) -> str | None:
        """The name of the service that it is, else None."""
        top, _, name = self.folder.partition("/")
        return name if top == "services" else None


class Members:
    """All members of a tree."""

    def __init__(self, members: Mapping[str, Member]) -> None:
        self.by_folder = {each.folder: each for each in members.values()}
        self._by_name = members
        self._below = {name: self._closure(name) for name in members}

    def below(self, name: str) -> frozenset[str]:
        """A member and all that it stands on."""
        return self._below.get(name, frozenset())

    def services_on(self, name: str) -> frozenset[str]:
        """The services that stand on a member, or are it."""
        services = {each.service: each.name for each in self._by_name.values()}
        return frozenset(service for service, its in services.items() if service and name in self.below(its))

    def _closure(self, name: str) -> frozenset[str]:
        found: set[str] = set()
        waiting = [name]
        while waiting:
            if (one := waiting.pop()) in self._by_name and one not in found:
                found.add(one)
                waiting += self._by_name[one].needs
        return frozenset(found)


def read(root: Path) -> Members:
    """The members of a tree. Raises Failure that names the file that can't be read."""
    found: dict[str, Member] = {}
    for path in sorted(each for top in FOLDERS for each in (root / top).glob("*/pyproject.toml")):
        try:
            about = tomllib.loads(path.read_text())["project"]
        except (OSError, ValueError, KeyError) as e:
            raise Failure(f"{path} says of no package what it needs: {e}") from e
        needs = frozenset(re.split(r"[^A-Za-z0-9._-]", each)[0] for each in about.get("dependencies", ()))
        name = str(about["name"])
        found[name] = Member(name, path.parent.relative_to(root).as_posix(), needs)
    return Members(found)
