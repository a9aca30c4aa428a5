"""The logs of all processes of a state as one stream, from the moment on at which it was made."""

from collections.abc import Iterator
from pathlib import Path

from weft_embedded.state import State

from weft_cli.log_files import LogFile
from weft_cli.log_format import readable


class LogStream:
    """What the parts and the engine hosts of a state write; servers have logs of their own kind, which stay apart."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._files = {path: LogFile(path, path.stat().st_size) for _, path in self._there()}

    def lines(self, *, styled: bool) -> list[tuple[str, str]]:
        """Whose each new line is, and the line as people read it."""
        found: list[tuple[str, str]] = []
        for name, path in self._there():
            file = self._files.setdefault(path, LogFile(path, 0))
            while lines := file.more():
                found += [(name, readable(line, styled=styled)) for line in lines]
        return found

    def _there(self) -> Iterator[tuple[str, Path]]:
        for path in sorted(self._state.logs.glob("*.log")):
            if path.stem != "launcher":  # who shows this has the launcher's own words
                yield path.stem, path
        for path in sorted(self._state.folder.glob("workers/*/logs/host-*.log")):
            yield path.stem.removeprefix("host-"), path
