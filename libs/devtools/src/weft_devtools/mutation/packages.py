"""The packages whose rules are mutated, and where in each the rules lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft_client.failure import Exit, Failure

_RULES_ALONE = ("fleet", "placement")
"""Libraries that are nothing but rules."""


@dataclass(frozen=True, slots=True)
class Package:
    """One member of the workspace."""

    name: str
    folder: Path
    """Relative to the tree's root, as all paths here."""
    rules: tuple[Path, ...]
    may_be_shared: tuple[str, ...]
    """Weft's import names that know nothing of this package, so that a trial may find them imported."""

    def tests(self, root: Path) -> Path:
        """Where its rules have a room of their own among the tests, that room: the others are stories of real parts."""
        room = self.folder / "tests" / "domain"
        return room if (root / room).is_dir() else self.folder / "tests"

    def files(self, root: Path) -> list[str]:
        """The Python files of its rules."""
        return sorted(str(file.relative_to(root)) for folder in self.rules for file in (root / folder).rglob("*.py"))


def packages(root: Path) -> list[Package]:
    """All of the tree: services with a `domain` room, and the libraries that are nothing but rules."""
    libraries = sorted(each.name for each in root.glob("libs/*/src/*") if each.is_dir())
    found: list[Package] = []
    for room in sorted(root.glob("services/*/src/*/domain")):
        folder = room.relative_to(root).parents[2]
        found.append(Package(folder.name, folder, (room.relative_to(root),), tuple(libraries)))
    for name in _RULES_ALONE:
        folder = Path("libs") / name
        if (root / folder / "src").is_dir():
            found.append(Package(name, folder, (folder / "src",), ("weft_contracts",)))
    return found


def named(all_of_them: Sequence[Package], names: Sequence[str]) -> list[Package]:
    """Those of these names; all where none is given. Raises Failure for a name that none bears."""
    if unknown := sorted(set(names) - {each.name for each in all_of_them}):
        there = ", ".join(each.name for each in all_of_them)
        raise Failure(f"there are no rules to mutate in {', '.join(unknown)}; there are {there}", Exit.USAGE)
    return [each for each in all_of_them if not names or each.name in names]
