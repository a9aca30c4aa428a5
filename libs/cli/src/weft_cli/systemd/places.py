"""Where a service manager looks for units, and where what they run keeps its own: the system's, or a user's."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from weft_embedded.state import default_folder

USER = "weft"
"""The user as whom units of the system run."""
_STATES = Path("/var/lib")


@dataclass(frozen=True, slots=True)
class Places:
    """Of one service manager."""

    system: bool
    units: Path
    settings: Path
    """Folder of files that an operator writes."""

    def state(self, part: str) -> Path:
        """Where a part keeps its state if it isn't told otherwise."""
        if self.system:
            return _STATES / ("weft" if part == "mesh" else f"weft-{part}")
        folder = default_folder().expanduser().absolute()
        return folder if part == "mesh" else folder / part

    @property
    def users(self) -> Path:
        """The file by which systemd knows the user."""
        return Path("/etc/sysusers.d/weft.conf")

    @property
    def manager(self) -> tuple[str, ...]:
        """The command that speaks with the manager."""
        return ("systemctl",) if self.system else ("systemctl", "--user")

    @property
    def runs(self) -> bool:
        """Whether that manager runs now."""
        if self.system:
            return Path("/run/systemd/system").is_dir()
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        return runtime is not None and (Path(runtime) / "systemd" / "private").exists()


def of_system() -> Places:
    """Those of the machine."""
    return Places(True, Path("/etc/systemd/system"), Path("/etc/weft"))


def of_user() -> Places:
    """Those of whoever calls."""
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config").absolute()
    return Places(False, configuration / "systemd" / "user", configuration / "weft")


def state_of_system(folder: Path) -> str | None:
    """The name by which systemd makes a state folder; None where it lies elsewhere."""
    return folder.name if folder.parent == _STATES else None


def closed_to(user: str, paths: tuple[Path, ...]) -> Path | None:
    """The first of these, or of the folders above them, that a user may not enter or read; None: all are open.

    A user that doesn't exist yet may do what everybody may.
    """
    try:
        known = pwd.getpwnam(user)
        uid, groups = known.pw_uid, set(os.getgrouplist(user, known.pw_gid))
    except KeyError:
        uid, groups = -1, set[int]()
    for each in paths:
        for step in (*reversed(each.parents), each):
            try:
                found = step.stat()
            except FileNotFoundError:
                break
            shift = 6 if found.st_uid == uid else 3 if found.st_gid in groups else 0
            wanted = 0o5 if step == each and step.is_dir() else 0o1 if step.is_dir() else 0o4
            if uid != 0 and (found.st_mode >> shift) & wanted != wanted:
                return step
    return None


def at_home(paths: tuple[Path, ...]) -> bool:
    """Whether one of these lies where people's own files do."""
    homes = (Path("/home"), Path("/root"), Path("/run/user"))
    return any(each.is_relative_to(home) for each in paths for home in homes)


def hidden(paths: tuple[Path, ...]) -> Path | None:
    """The first of these that units of the system don't see: each has a `/tmp` of its own (`PrivateTmp`)."""
    own = (Path("/tmp"), Path("/var/tmp"))
    return next((each for each in paths if any(each.is_relative_to(folder) for folder in own)), None)
