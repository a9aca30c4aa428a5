"""The backends' folder: one environment each, named by its content; what is half made there goes at the next start."""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import psutil
from pydantic import ValidationError
from weft_contracts.backends import BackendVariant
from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.values import EngineName, Vendor

ABOUT = "weft-backend.json"
_MAKING, _REMOVING = ".making-", ".removing-"
_USED = "weft-backend.used"
_MOST = 64


@dataclass(frozen=True, slots=True)
class InstalledBackend:
    """One environment that is whole."""

    name: str
    """Of its folder."""
    engine: EngineName
    vendor: Vendor
    version: str
    python: str
    profile: EngineProfile
    made_at: float
    """Seconds since the epoch."""
    used_at: float = 0.0
    """When it was last seen to be used, or made."""
    recipe: str = ""
    """The digest of the variant that it was made by; empty: it was made before that was noted."""
    size: int | None = None
    """Bytes on the disk; None: not known."""


def write_about(environment: Path, engine: EngineName, variant: BackendVariant, profile: EngineProfile | None) -> None:
    """Say in the environment what it is. `profile`: of an engine that Weft doesn't come with."""
    about = {
        "engine": engine,
        "vendor": variant.vendor,
        "version": variant.version,
        "profile": profile.model_dump(mode="json") if profile is not None else None,
        "recipe": variant.digest,
        "size": _size(environment),
    }
    (environment / ABOUT).write_text(json.dumps(about))


def _size(environment: Path) -> int:
    """Bytes on the disk of all that is in it."""
    found = (os.path.join(root, name) for root, _, names in os.walk(environment) for name in names)
    return sum(os.lstat(path).st_blocks * 512 for path in found)


def installed(folder: Path) -> tuple[InstalledBackend, ...]:
    """The whole environments, the newest first. None of them is run: that would take a second for each."""
    found: list[InstalledBackend] = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(folder.iterdir())[: 4 * _MOST]:
            if not path.name.startswith(".") and (one := read(path)) is not None:
                found.append(one)
    return tuple(sorted(found, key=lambda one: (-one.made_at, one.name))[:_MOST])


def read(environment: Path) -> InstalledBackend | None:
    """What an environment is; None where it is none."""
    about, python = environment / ABOUT, environment / "bin" / "python"
    try:
        body = json.loads(about.read_text())
        engine, vendor = str(body["engine"]), body["vendor"]
        if vendor not in get_args(Vendor) or not python.exists():
            return None
        profile = BUILTIN.get(engine) or EngineProfile.model_validate(body["profile"])
        made, size = about.stat().st_mtime, body.get("size")
        return InstalledBackend(
            environment.name,
            engine,
            vendor,
            str(body["version"]),
            str(python),
            profile,
            made,
            max(made, _used_at(environment)),
            str(body.get("recipe", "")),
            size if isinstance(size, int) else None,
        )
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return None


def lock(folder: Path, name: str, *, shared: bool = False) -> int | None:
    """The lock of one environment, as an open descriptor; None while somebody else has it. Raises OSError.

    `shared`: who uses it; any number may. Who makes or removes it is alone.

    Between workers of one machine that share the folder, and against an installer that outlived its worker.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    held = os.open(folder / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    except OSError:
        os.close(held)
        raise
    return held


def making(folder: Path, name: str) -> Path:
    """Where an environment is made before it bears its name."""
    return folder / f"{_MAKING}{name}"


def remove_half_made(folder: Path) -> list[str]:
    """Remove what nobody makes any more; the names of what is gone."""
    gone: list[str] = []
    for path in _left(folder, _REMOVING):
        with contextlib.suppress(OSError):
            remove(path)
    for path in _left(folder, _MAKING):
        name = path.name.removeprefix(_MAKING)
        with contextlib.suppress(OSError):
            held = lock(folder, name)
            if held is not None:
                try:
                    remove(path)
                    gone.append(name)
                finally:
                    os.close(held)
    return gone


def _left(folder: Path, prefix: str) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        yield from (path for path in list(folder.iterdir()) if path.name.startswith(prefix))


def mark_used(folder: Path, names: Iterable[str]) -> None:
    """Note that these are used now, for all who share the folder."""
    for name in names:
        with contextlib.suppress(OSError):
            if (folder / name).is_dir():
                (folder / name / _USED).touch()


def _used_at(environment: Path) -> float:
    with contextlib.suppress(OSError):
        return (environment / _USED).stat().st_mtime
    return 0.0


def remove_unused(folder: Path, name: str) -> bool:
    """Remove an environment, unless somebody holds it or runs in it. Raises OSError.

    Who holds its lock is about to use it, or uses it; who lost that lock with its worker is known by what it runs.
    It bears another name before anything of it goes, so that nobody finds a part of it.
    """
    held = lock(folder, name)
    if held is None:
        return False
    try:
        environment = folder / name
        if _runs(environment):
            return False
        going = folder / f"{_REMOVING}{name}-{secrets.token_hex(4)}"
        if environment.exists():
            environment.rename(going)
    finally:
        os.close(held)
    remove(going)
    return True


def _runs(environment: Path) -> bool:
    """Whether a process of this machine was started from an environment."""
    inside = f"{environment}{os.sep}"
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(part.startswith(inside) for part in process.cmdline()):
                return True
    return False


def remove(environment: Path) -> None:
    """Remove a folder and all in it, also what is written in it meanwhile. Raises OSError."""
    for _ in range(3):
        shutil.rmtree(environment, ignore_errors=True)
        if not environment.exists():
            return
    shutil.rmtree(environment)
