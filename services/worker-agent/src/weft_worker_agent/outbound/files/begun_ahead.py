"""Which models began to come here ahead of need, kept on the disk: what came of one that is wanted no more can go, even
if the agent was away when that was said."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError
from weft_contracts.facts.node import FilesWanted

from weft_worker_agent.outbound.files import private_file


class BegunAhead:
    """Of one agent; those that share a store have each their own. Methods block for moments, and raise OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, FilesWanted] | None = None

    def all(self) -> Mapping[str, FilesWanted]:
        """By `files_digest`. What can't be read is as if it had not begun."""
        if self._known is None:
            self._known = {}
            for path in sorted(self._folder.glob("*.json")) if self._folder.is_dir() else ():
                with contextlib.suppress(OSError, ValidationError):
                    self._known[path.stem] = FilesWanted.model_validate_json(path.read_bytes())
        return self._known

    def note(self, wanted: FilesWanted) -> None:
        """It begins."""
        if wanted.files not in self.all():
            self._folder.mkdir(parents=True, exist_ok=True)
            private_file.write(self._path(wanted.files), wanted.model_dump_json().encode())
            self._known = {**self.all(), wanted.files: wanted}

    def drop(self, files: str) -> None:
        """It came whole, or nothing of it is here any more."""
        self._path(files).unlink(missing_ok=True)
        self._known = {each: wanted for each, wanted in self.all().items() if each != files}

    def _path(self, files: str) -> Path:
        return self._folder / f"{files}.json"
