"""What changed and is not run yet: kept until every changed file can be compiled."""

from collections.abc import Iterable
from pathlib import Path

from weft_devtools.dev.affected import Affected, affected
from weft_devtools.dev.members import Members


class Pending:
    """Changed files of a tree, whose services wait for the next save while one of them is broken."""

    def __init__(self, root: Path, members: Members) -> None:
        self._root = root
        self._members = members
        self._files: set[str] = set()

    def changed(self, files: Iterable[str]) -> tuple[Affected, list[str]]:
        """Who is to start anew now, and a sentence for each file that keeps its services from that."""
        self._files |= set(files)
        faults = {file: fault for file in sorted(self._files) if (fault := _fault(self._root / file, file))}
        held = affected(self._members, faults)
        ready = {file for file in self._files if not _shares(affected(self._members, [file]), held)}
        found = affected(self._members, ready)
        self._files -= ready
        return found, list(faults.values())


def _shares(one: Affected, other: Affected) -> bool:
    """Whether two changes concern a process in common."""
    worker = (one.agents or one.workers) and (other.agents or other.workers)
    return bool(one.services & other.services) or worker


def _fault(path: Path, file: str) -> str | None:
    """Why Python can't compile a file; None where it can, or where it is no source or gone."""
    if path.suffix != ".py":
        return None
    try:
        compile(path.read_bytes(), file, "exec")
    except SyntaxError as e:
        return f"{file}:{e.lineno}: {e.msg}"
    except ValueError as e:  # a zero byte
        return f"{file}: {e}"
    except OSError:
        return None
    return None
