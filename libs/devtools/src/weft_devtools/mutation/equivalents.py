"""Mutants that change nothing that anybody could notice, each listed with the reason."""

import functools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_client.failure import Failure

from weft_devtools.mutation.mutants import Mutant, mutants

LIST = Path("tests") / "equivalent_mutants.toml"


@dataclass(frozen=True, slots=True)
class Equivalent:
    """One entry of the list: it stands for each mutant of its file that makes `line` into `becomes`."""

    file: str
    line: str
    becomes: str
    reason: str

    def covers(self, mutant: Mutant) -> bool:
        return (self.file, self.line, self.becomes) == (mutant.file, mutant.before, mutant.after)


def read(root: Path) -> list[Equivalent]:
    """The tree's list; empty where it has none. Raises Failure for an entry that isn't whole."""
    path = root / LIST
    if not path.is_file():
        return []
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text()).get("equivalent", [])
    found: list[Equivalent] = []
    for entry in entries:
        if set(entry) != {"file", "line", "becomes", "reason"} or not str(entry["reason"]).strip():
            raise Failure(f"{LIST}: an entry has file, line, becomes and reason; this one doesn't: {entry}")
        found.append(Equivalent(**{name: str(value) for name, value in entry.items()}))
    return found


def check(root: Path, listed: Sequence[Equivalent]) -> None:
    """Raise Failure that names each entry whose file, line or change is no longer there."""
    wrong: list[str] = []

    @functools.cache
    def made(file: str) -> list[Mutant]:
        return mutants(root, "", file)

    for each in listed:
        path = root / each.file
        if not path.is_file():
            wrong.append(f"{each.file}: there is no such file")
        elif each.line not in {line.strip() for line in path.read_text().splitlines()}:
            wrong.append(f"{each.file}: no line reads {each.line!r}")
        elif not any(each.covers(mutant) for mutant in made(each.file)):
            wrong.append(f"{each.file}: no mutant makes {each.line!r} into {each.becomes!r}")
    if wrong:
        raise Failure(f"{LIST} lists what is gone: {'; '.join(wrong)}")
