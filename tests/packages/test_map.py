"""CONTRIBUTING's map is the code's: each step of the three ways is there, and the drawing is what is imported."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
STEP = re.compile(r"^\d+\. `(?P<file>[^`]+\.py)`: `(?P<names>[\w.`, ]+)` ", re.MULTILINE)
SOURCES = {path.name: path for top in ("libs", "services") for path in ROOT.glob(f"{top}/*/src/weft_*")}


def ways() -> list[re.Match[str]]:
    return list(STEP.finditer(TEXT))


def defined(file: Path) -> Iterator[str]:
    """Names of the functions and classes of a file; of methods with their class."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{inner.name}"


def test_there_are_three_ways_and_every_numbered_line_is_a_step() -> None:
    section = TEXT.partition("## Three ways through the code")[2].partition("\n## ")[0]
    assert 3 == section.count("\n### ")
    assert len(re.findall(r"^\d+\. ", section, re.MULTILINE)) == len(ways())


@pytest.mark.parametrize("step", ways(), ids=lambda step: step["file"])
def test_a_step_of_a_way_names_what_its_file_defines(step: re.Match[str]) -> None:
    package, _, inside = step["file"].partition("/")
    file = SOURCES[package] / inside
    names = set(defined(file))
    assert [] == [name for name in re.findall(r"[\w.]+", step["names"]) if name not in names]


def imported(package: Path) -> set[str]:
    """The packages of Weft's own that one imports, when it runs."""
    found: set[str] = set()
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                found.add(node.module.partition(".")[0])
    return found & SOURCES.keys() - {package.name}


def drawing() -> str:
    """Who stands on whom, in Mermaid; what follows from two other lines is left out."""
    stands_on = {name: imported(path) for name, path in SOURCES.items()}

    def below(name: str) -> set[str]:
        return stands_on[name].union(*(below(each) for each in stands_on[name]))

    lines = ["flowchart BT"]
    for name in sorted(stands_on):
        further = set[str]().union(*(below(each) for each in stands_on[name]))
        short = name.removeprefix("weft_")
        lines += [f"  {short} --> {each.removeprefix('weft_')}" for each in sorted(stands_on[name] - further)]
    return "\n".join(lines)


def test_the_drawing_of_libraries_and_services_is_what_they_import() -> None:
    (drawn,) = re.findall(r"```mermaid\n(.*?)\n```", TEXT, re.DOTALL)
    assert drawing() == drawn
