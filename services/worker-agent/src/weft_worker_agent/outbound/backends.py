"""Engines in environments of their own: a folder with one for each, `<folder>/<engine>/bin/python`."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from weft_contracts.facts.values import EngineName

PACKAGES: Mapping[EngineName, str] = MappingProxyType({"llama.cpp": "xllamacpp", "simulated": "weft-engine"})
"""Whose version is the engine's, by engine: those that an engine host can run."""
_ASK_S = 20.0
_ASK = "import importlib.metadata as m, sys; m.version('weft-engine'); print(m.version(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class Environment:
    """An engine's own interpreter, and the version that lies there."""

    python: str
    version: str


@dataclass(frozen=True, slots=True)
class Environments:
    """What a folder holds, and a sentence for each environment in it that can't be used."""

    found: Mapping[EngineName, Environment]
    wrong: tuple[str, ...] = ()


def environments(folder: Path | None) -> Environments:
    """The engines' environments in a folder; each is asked once, for 20 s at most. None: there are none."""
    found: dict[EngineName, Environment] = {}
    wrong: list[str] = []
    for engine, package in PACKAGES.items() if folder is not None else ():
        assert folder is not None
        python = folder / engine / "bin" / "python"
        if not python.exists():
            continue
        try:
            asked = subprocess.run(
                [str(python), "-c", _ASK, package],
                capture_output=True,
                text=True,
                check=False,
                timeout=_ASK_S,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            wrong.append(f"{python} can't be used for {engine}: {error}")
            continue
        if asked.returncode:
            last = (asked.stderr.strip().splitlines() or ["it said nothing"])[-1]
            wrong.append(f"{python} can't be used for {engine}: install weft-engine and {package} there ({last})")
        else:
            found[engine] = Environment(str(python), asked.stdout.strip())
    return Environments(MappingProxyType(found), tuple(wrong))
