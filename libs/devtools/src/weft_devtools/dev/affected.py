"""Which processes of a mesh a change of files concerns."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from weft_devtools.dev.members import FOLDERS, Members

WORKER = "worker-agent"
_SUPERVISOR = "services/worker-agent/src/weft_worker_agent"
OF_THE_SUPERVISOR = (
    f"{_SUPERVISOR}/__main__.py",
    f"{_SUPERVISOR}/outbound/supervisor/",
    "libs/runtime/src/weft_runtime/secret_pipe.py",
)
"""What the parent of agent and engine hosts has loaded: files and, with a slash at the end, folders."""
_HOST = "weft-engine"
"""An engine host runs this and what it stands on."""
_LAUNCHERS = ("weft-cli", "weft-devtools", "weft-embedded", "weft-servers")
LOCKS = ("pyproject.toml", "requirements.lock", "requirements-dev.lock", "requirements-tool.lock")
"""At the root: with each member's own `pyproject.toml`, what the environment is made from."""


@dataclass(frozen=True, slots=True)
class Affected:
    """What has other code now than it runs."""

    services: frozenset[str] = frozenset()
    """Names of services, the worker left out."""
    agents: bool = False
    """The workers' agents; their engine hosts go on."""
    workers: bool = False
    """Whole workers: supervisor, agent and engine hosts."""
    launcher: bool = False
    """The launcher itself, or this program."""
    environment: frozenset[str] = frozenset()
    """Files that the environment is made from."""

    def __or__(self, other: "Affected") -> "Affected":
        return Affected(
            self.services | other.services,
            self.agents or other.agents,
            self.workers or other.workers,
            self.launcher or other.launcher,
            self.environment | other.environment,
        )


def affected(members: Members, files: Iterable[str]) -> Affected:
    """What a change of these files concerns; they are named from the root on. What no process loads concerns nobody."""
    found = Affected()
    for file in files:
        found |= _by_one(members, file)
    return found


def _by_one(members: Members, file: str) -> Affected:
    parts = PurePosixPath(file).parts
    if file in LOCKS or (len(parts) == 3 and parts[0] in FOLDERS and parts[2] == "pyproject.toml"):
        return Affected(environment=frozenset({file}))
    member = members.by_folder.get("/".join(parts[:2]))
    if member is None or parts[2:3] != ("src",):
        return Affected()
    services = members.services_on(member.name)
    whole = member.name in members.below(_HOST) or any(
        file.startswith(each) if each.endswith("/") else file == each for each in OF_THE_SUPERVISOR
    )
    return Affected(
        services=services - {WORKER},
        agents=WORKER in services and not whole,
        workers=whole,
        launcher=member.name in _LAUNCHERS,
    )
