"""Engines in environments of their own: a folder with one for each, `<folder>/<engine>/bin/python`."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError
from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.values import ENGINE_NAME, EngineName

_ASK_S = 20.0
_ASK = "import importlib.metadata as m, sys; m.version('weft-engine'); print(m.version(sys.argv[1]))"
_MOST = 32
"""Environments that are asked, beside those of built-in engines."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An engine's own interpreter, the version that lies there, and what there is to know of the engine."""

    python: str
    version: str
    profile: EngineProfile


@dataclass(frozen=True, slots=True)
class Environments:
    """What a folder holds, and a sentence for each environment in it that can't be used."""

    found: Mapping[EngineName, Environment]
    wrong: tuple[str, ...] = ()


class _Unusable(Exception):
    """An environment that can't be used; the message says why."""


def environments(folder: Path | None) -> Environments:
    """The engines' environments in a folder; each is asked once, for 20 s at most. None: there are none."""
    found: dict[EngineName, Environment] = {}
    wrong: list[str] = []
    for engine in _named(folder) if folder is not None else ():
        assert folder is not None
        python = folder / engine / "bin" / "python"
        if not python.exists():
            continue
        try:
            found[engine] = _asked(python, engine)
        except _Unusable as fault:
            wrong.append(f"{python} can't be used for {engine}: {fault}")
    return Environments(MappingProxyType(found), tuple(wrong))


def _named(folder: Path) -> Iterator[EngineName]:
    """Built-in engines that a host can run, then others that a folder there is named for."""
    yield from (name for name, profile in BUILTIN.items() if profile.install.adapter)
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    yield from [name for name in there if name not in BUILTIN and re.fullmatch(ENGINE_NAME, name)][:_MOST]


def _asked(python: Path, engine: EngineName) -> Environment:
    """What an environment says of its engine. Raises _Unusable."""
    profile = BUILTIN.get(engine)
    if profile is not None:
        package = profile.install.package
        said = _run([str(python), "-c", _ASK, package], f"install weft-engine and {package} there")
        return Environment(str(python), said, profile)
    said = _run([str(python), "-m", "weft_engine.installed", engine], "install weft-engine and its package there")
    try:
        body = json.loads(said)
        return Environment(str(python), str(body["version"]), EngineProfile.model_validate(body["profile"]))
    except (KeyError, TypeError, ValidationError, ValueError) as error:
        raise _Unusable(f"it answers with no profile: {error}") from None


def _run(argv: list[str], advice: str) -> str:
    try:
        asked = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=_ASK_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Unusable(str(error)) from None
    if asked.returncode:
        last = (asked.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise _Unusable(f"{advice} ({last})")
    return asked.stdout.strip()
