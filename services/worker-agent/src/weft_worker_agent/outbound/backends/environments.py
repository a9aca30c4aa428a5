"""The backends' folder: one environment each, named by its content; what is half made there goes at the next start."""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pydantic import ValidationError
from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.values import EngineName, Vendor

ABOUT = "weft-backend.json"
_MAKING = ".making-"
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


def write_about(
    environment: Path, engine: EngineName, vendor: Vendor, version: str, profile: EngineProfile | None
) -> None:
    """Say in the environment what it is. `profile`: of an engine that Weft doesn't come with."""
    told = profile.model_dump(mode="json") if profile is not None else None
    about = {"engine": engine, "vendor": vendor, "version": version, "profile": told}
    (environment / ABOUT).write_text(json.dumps(about))


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
        made = about.stat().st_mtime
        return InstalledBackend(environment.name, engine, vendor, str(body["version"]), str(python), profile, made)
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return None


def lock(folder: Path, name: str) -> int | None:
    """The lock of one environment, as an open descriptor; None while somebody else has it. Raises OSError.

    Between workers of one machine that share the folder, and against an installer that outlived its worker.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    held = os.open(folder / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
    for path in _half_made(folder):
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


def _half_made(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        yield from (path for path in list(folder.iterdir()) if path.name.startswith(_MAKING))


def remove(environment: Path) -> None:
    """Remove a folder and all in it, also what is written in it meanwhile. Raises OSError."""
    for _ in range(3):
        shutil.rmtree(environment, ignore_errors=True)
        if not environment.exists():
            return
    shutil.rmtree(environment)
