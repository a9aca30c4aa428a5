"""The Containerfile and what it reads are held against the tree: targets, entry points, ports, locks."""

import importlib.metadata
import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from weft_contracts.catalogue import SERVICES

from .container_stages import Stage, stages

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy/images"
TEXT = (FOLDER / "Containerfile").read_text()
STAGES = stages(TEXT)
TARGETS: dict[str, list[str]] = tomllib.loads((FOLDER / "targets.toml").read_text())
MEMBERS: dict[str, dict[str, Any]] = {
    each["name"]: each
    for each in (tomllib.loads(file.read_text())["project"] for file in ROOT.glob("*/*/pyproject.toml"))
}
NOT_SHIPPED = {"wheels", "build", "common", "service"}
SERVING = {name: stage for name, stage in STAGES.items() if name not in {*NOT_SHIPPED, "tool"}}


def test_there_is_a_target_for_each_service_and_for_nothing_that_there_is_not() -> None:
    assert {*SERVICES, "worker", "worker-nvidia", "tool"} == STAGES.keys() - NOT_SHIPPED
    assert {*SERVICES, "worker", "tool"} == TARGETS.keys()


@pytest.mark.parametrize("stage", SERVING.values(), ids=lambda each: each.name)
def test_a_target_runs_its_own_module_as_nobody_and_says_how_it_is(stage: Stage) -> None:
    module = "weft_worker_agent" if stage.name.startswith("worker") else f"weft_{stage.name.replace('-', '_')}"
    assert ["python", "-m", module] == stage.entrypoint
    assert importlib.util.find_spec(f"{module}.__main__") is not None
    assert "10001:10001" == stage.user
    assert ["python", "-I", "-S", "/opt/weft/probe.py"] == stage.healthcheck[:4]
    assert stage.env["WEFT_HTTP_PORT"] in stage.exposed
    assert f"weft-{stage.name}" == stage.labels["org.opencontainers.image.title"]


@pytest.mark.parametrize("name", [*TARGETS, "worker-nvidia"])
def test_a_target_installs_its_own_lock_and_bears_the_version_of_its_member(name: str) -> None:
    assert (["worker-whole"] if name == "worker-nvidia" else [name]) == STAGES[name].locks
    first = Requirement(TARGETS["worker" if name == "worker-nvidia" else name][0]).name
    assert MEMBERS[first]["version"] == STAGES[name].labels["org.opencontainers.image.version"]


@pytest.mark.parametrize("target", TARGETS)
def test_the_lock_has_all_that_a_target_needs_by_its_members_own_declarations(target: str) -> None:
    locked = set(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    needed, waiting = set[str](), [Requirement(each) for each in TARGETS[target]]
    while waiting:
        wanted = waiting.pop()
        if (said := f"{wanted.name}[{','.join(sorted(wanted.extras))}]") not in needed:
            needed.add(said)
            waiting += [
                each
                for each in _declared(wanted)
                if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras))
            ]
    names = {each.partition("[")[0].replace("_", "-").lower() for each in needed}
    assert len(names) > 20
    assert set() == names - locked - set(MEMBERS), "make the lock anew: requirements.in says how"


def test_what_a_target_wants_is_a_member_with_those_extras() -> None:
    for wanted in (Requirement(each) for names in TARGETS.values() for each in names):
        assert wanted.extras <= MEMBERS[wanted.name].get("optional-dependencies", {}).keys(), wanted


def test_every_file_that_is_copied_from_the_tree_is_there() -> None:
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", TEXT, re.MULTILINE)
    assert len(copied) > 5
    assert [] == [each for line in copied for each in line.split() if not list(ROOT.glob(each))]


def test_what_comes_as_source_alone_is_the_one_that_the_installer_builds() -> None:
    blocks = re.findall(
        r"^(\S+)==\S+ .*\n((?:    --hash.*\n?)+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE
    )
    assert len(blocks) > 50
    assert ["nkeys"] == [name for name, hashes in blocks if hashes.count("--hash") == 1 and _has_no_wheel(name)]
    assert 'FROM_SOURCE = "nkeys"' in (FOLDER / "install.py").read_text()


def _has_no_wheel(name: str) -> bool:
    """Whether what is installed of it was built here: pure, and by setuptools."""
    told = importlib.metadata.distribution(name).read_text("WHEEL") or ""
    return "setuptools" in told and "Root-Is-Purelib: true" in told


def _declared(wanted: Requirement) -> list[Requirement]:
    return [Requirement(each) for each in importlib.metadata.distribution(wanted.name).requires or ()]
