"""How a backend is installed: the folder's name, what the installer is given, in which steps. Pure."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft_contracts.backends import BackendVariant, SourceBuild
from weft_contracts.facts.values import EngineName

_PLAIN = re.compile(r"[^A-Za-z0-9.]+")
_OWN = re.compile(r"weft[-_.]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class InstallStep:
    """One call of the installer: the files that it reads, and the flags that follow from the recipe."""

    requirements: tuple[str, ...]
    """Lines of a requirements file."""
    constraints: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    require_hashes: bool = False
    built: str = ""
    """The one distribution that is built here, from its source and alone; empty: nothing is."""
    source: SourceBuild | None = None
    """How it is built."""


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """All that is installed for one engine and vendor."""

    name: str
    """Of the environment's folder: another content has another name."""
    engine: EngineName
    variant: BackendVariant
    steps: tuple[InstallStep, ...]


def plan(engine: EngineName, variant: BackendVariant, python: str, host: Sequence[str]) -> InstallPlan:
    """What to install for an engine.

    Args:
        python: version and machine of the interpreter: `3.11 x86_64`.
        host: what the engine host itself needs from others, as its own metadata says.
    """
    content = json.dumps([engine, variant.digest, python, sorted(host)], separators=(",", ":"))
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    name = "-".join((_PLAIN.sub("_", engine), _PLAIN.sub("_", variant.version), variant.vendor, digest))
    lines = tuple(_line(requirement, variant) for requirement in variant.requirements)
    if (source := variant.source) is not None:
        return InstallPlan(name, engine, variant, _with_build(variant, source, host))
    # A locked engine is installed by itself: what the host needs has no hashes, and changes none of its versions.
    if variant.locked:
        pinned = tuple(variant.requirements)
        steps = (
            InstallStep(lines, variant.constraints, variant.excludes, require_hashes=True),
            InstallStep(tuple(host), pinned, variant.excludes),
        )
    else:
        steps = (InstallStep((*lines, *host), variant.constraints, variant.excludes),)
    return InstallPlan(name, engine, variant, steps)


def _with_build(variant: BackendVariant, source: SourceBuild, host: Sequence[str]) -> tuple[InstallStep, ...]:
    """What is built comes first and alone: whatever else is needed is never built."""
    own = f"{variant.package}=={variant.version}"
    others = tuple(each for each in variant.requirements if each != own)
    lines = tuple(_line(each, variant) for each in others)
    built = InstallStep((_line(own, variant),), require_hashes=True, built=variant.package, source=source)
    if not variant.locked:
        return built, InstallStep((own, *lines, *host), variant.constraints, variant.excludes)
    locked = InstallStep(lines, variant.constraints, variant.excludes, require_hashes=True)
    host_step = InstallStep((own, *host), others, variant.excludes)
    return (built, locked, host_step) if lines else (built, host_step)


def build_lines(source: SourceBuild) -> tuple[str, ...]:
    """What a build is made with, as lines of a constraints file, each with its hashes."""
    return tuple(" ".join((each, *(f"--hash={hash}" for hash in source.hashes[each]))) for each in source.requirements)


def _line(requirement: str, variant: BackendVariant) -> str:
    return " ".join((requirement, *(f"--hash={each}" for each in variant.hashes.get(requirement, ()))))


def of_others(requirements: Iterable[str]) -> tuple[str, ...]:
    """Of what a package of Weft's requires by its metadata: what others make, without its extras."""
    found = (line for line in requirements if "extra ==" not in line and _OWN.match(line) is None)
    return tuple(sorted({line.replace(" ", "") if ";" not in line else line for line in found}))
