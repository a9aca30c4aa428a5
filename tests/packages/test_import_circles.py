"""Within a package imports have a direction: who reads a module needs none of those that import it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(ROOT.glob("*/*/src/weft_*"))


def named(file: Path) -> Iterator[tuple[str, str]]:
    """What a file imports, lazily or for types alone too: each module, and what of it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{file}: a relative import, which this test does not read"
            assert not node.level, f"{file}: a relative import, which this test does not read"
            yield from ((node.module, each.name) for each in node.names)


def imports(package: Path) -> dict[str, set[str]]:
    """By module of a package those of its modules that it imports."""
    files = {
        ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): file
        for file in package.rglob("*.py")
        if "gen" not in file.relative_to(package).parts
    }
    return {
        module: {inner if (inner := f"{outer}.{name}") in files else outer for outer, name in named(file)}
        & files.keys()
        for module, file in files.items()
    }


def in_circles(imported: dict[str, set[str]]) -> set[str]:
    """Those that import themselves by way of others."""
    left = dict(imported)
    while straight := {module for module, others in left.items() if not others & left.keys()}:
        left = {module: others for module, others in left.items() if module not in straight}
    while above := left.keys() - set[str]().union(*left.values()):  # they only lead into a circle
        left = {module: others for module, others in left.items() if module not in above}
    return set(left)


def test_a_circle_is_found_with_those_alone_that_are_in_it() -> None:
    assert {"b", "c", "d"} == in_circles({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b", "e"}, "e": set()})


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_no_modules_of_a_package_import_each_other_not_even_lazily_or_for_types(package: Path) -> None:
    assert set() == in_circles(imports(package))
