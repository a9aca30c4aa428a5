"""A new package is known to all that has to know it: the import rules, the workspace, the catalogue, the mesh."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.catalogue import SERVICES
from weft_embedded import mesh_plan

ROOT = Path(__file__).resolve().parents[2]
TOOL: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
CONTRACTS: dict[str, dict[str, Any]] = {each["name"]: each for each in TOOL["importlinter"]["contracts"]}
LIBRARIES, OF_SERVICES = ({path.name for path in ROOT.glob(f"{top}/*/src/weft_*")} for top in ("libs", "services"))
ALL = LIBRARIES | OF_SERVICES


@pytest.mark.parametrize(
    ("rule", "key", "packages"),
    [
        ("Libraries know no service", "source_modules", LIBRARIES),
        ("Libraries know no service", "forbidden_modules", OF_SERVICES),
        ("Services don't import one another: they speak through the log", "modules", OF_SERVICES),
        ("The rooms of a service are layered, and there are no others", "containers", OF_SERVICES),
        (
            "Only the event log, the runtime and the test fixtures speak NATS",
            "source_modules",
            ALL - {"weft_eventlog", "weft_runtime", "weft_testing"},
        ),
        ("Only the engine's own adapter imports vLLM", "source_modules", ALL),
    ],
)
def test_an_import_rule_names_every_package_that_it_is_for(rule: str, key: str, packages: set[str]) -> None:
    assert packages == set(CONTRACTS[rule][key])


def test_the_import_rules_look_at_every_package_and_every_library_has_a_layer() -> None:
    layers: list[str] = CONTRACTS["Libraries are layered: each imports only those below it"]["layers"]
    assert ALL == set(TOOL["importlinter"]["root_packages"])
    assert LIBRARIES == {name for layer in layers for name in layer.split(" | ")}


def test_every_member_of_the_workspace_is_a_source_of_it() -> None:
    members = {tomllib.loads(file.read_text())["project"]["name"] for file in ROOT.glob("*/*/pyproject.toml")}
    assert members == TOOL["uv"]["sources"].keys()


def test_every_service_is_a_writer_of_the_catalogue_and_a_part_of_the_embedded_mesh() -> None:
    modules = {name: f"weft_{name.replace('-', '_')}" for name in SERVICES}
    assert OF_SERVICES == {*modules.values(), mesh_plan.WORKER_MODULE}
    assert modules == mesh_plan.SERVICES


def test_every_service_is_installed_alone_by_a_test() -> None:
    listed = re.findall(r'alone\("(weft-[a-z-]+)"', (ROOT / "tests/packages/test_installed_alone.py").read_text())
    assert OF_SERVICES == {name.replace("-", "_") for name in listed}
