"""What a service's snapshots depend on: the code that decodes and folds, and nothing that only decides or shows."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from weft_eventlog.snapshots.version import imports

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for top in ("libs", "services") for path in ROOT.glob(f"{top}/*/src"))
MEMORIES = {
    "gateway": "weft_gateway.projections.memory:Memory",
    "metadata-cache": "weft_metadata_cache.domain.due_fetches:State",
    "reconciler": "weft_reconciler.domain.state:State",
    "registry": "weft_registry.domain.state:RegistryState",
    "scheduler": "weft_scheduler.domain.state:State",
}
"""What each service's `app` hands to its projection."""

ALL = set(MEMORIES)
CHANGES: dict[str, set[str]] = {
    "weft_placement/scorers/spread.py": set(),
    "weft_contracts/permissions.py": set(),
    "weft_gateway/inbound/admin/status.py": set(),
    "weft_runtime/decider.py": set(),
    "weft_fleet/README.md": set(),
    "weft_registry/domain/state.py": {"registry"},
    "weft_scheduler/domain/waiting.py": {"scheduler"},
    "weft_reconciler/domain/failures.py": {"reconciler"},
    "weft_gateway/projections/directory.py": {"gateway"},
    "weft_requests/pending.py": {"registry", "reconciler"},
    "weft_fleet/node_view.py": ALL,
    "weft_fleet/node_machine.py": ALL,
    "weft_contracts/facts/node.py": ALL,
    "weft_eventlog/delivered.py": ALL,
}
"""A file that gets one more byte, and the services whose snapshots are then of other code."""

CHANGE_ALL = """
import importlib, json, sys
from weft_eventlog.snapshots.version import fold_version
memories, tree, files = json.loads(sys.argv[1])
classes = {}
for service, place in memories.items():
    module, _, name = place.partition(":")
    classes[service] = getattr(importlib.import_module(module), name)
def versions():
    return {service: fold_version(found) for service, found in classes.items()}
said = [versions()]
for file in files:
    with open(f"{tree}/{file}", "a") as changed:
        changed.write("#")
    said.append(versions())
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """By changed file: the services whose version it changed. All sources are copied, and changed one after another."""
    tree = tmp_path_factory.mktemp("tree")
    for source in SOURCES:
        shutil.copytree(source, tree, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-c", CHANGE_ALL, json.dumps([MEMORIES, str(tree), list(CHANGES)])]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert 0 == done.returncode, done.stderr
    said: list[dict[str, str]] = json.loads(done.stdout)
    assert all(said[0].values())
    return {
        file: {service for service in MEMORIES if before[service] != after[service]}
        for file, before, after in zip(CHANGES, said, said[1:], strict=False)
    }


@pytest.mark.parametrize("changed", CHANGES)
def test_one_more_byte_drops_the_snapshots_of_what_it_folds_and_no_others(
    dropped: dict[str, set[str]], changed: str
) -> None:
    assert CHANGES[changed] == dropped[changed]


def test_a_memory_stands_where_its_service_says() -> None:
    for service, place in MEMORIES.items():
        module, _, name = place.partition(":")
        app = next((ROOT / "services" / service / "src").glob("*/app.py")).read_text()
        assert f"from {module} import " in app
        assert f"{name}(" in app


def test_every_service_that_hands_a_memory_to_a_projection_is_looked_at() -> None:
    apps = (ROOT / "services").glob("*/src/*/app.py")
    assert {app.parents[2].name for app in apps if "runtime.projection(" in app.read_text()} == MEMORIES.keys()


def modules() -> set[str]:
    """All of Weft's own, packages among them."""
    found = {file.relative_to(source).with_suffix("").parts for source in SOURCES for file in source.rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in found}


def by_parsing(source: str, own: set[str]) -> set[str]:
    """What a source imports of Weft's own modules, found slowly."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                found.add(inner if inner in own else node.module)
    return {name for name in found if name.startswith("weft_")}


def test_imports_that_are_found_by_text_are_those_that_are_found_by_parsing() -> None:
    own = modules()
    for source in SOURCES:
        for file in source.rglob("*.py"):
            text = file.read_text()
            assert by_parsing(text, own) == set(imports(text)), file
