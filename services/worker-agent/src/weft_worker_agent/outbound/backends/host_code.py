"""The engine host's own code, for environments that have it not: of this worker's version, in a folder by its content.

So an upgrade of the worker makes a new small folder, and installs no engine again.
"""

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from weft_worker_agent.domain.install_plan import of_others

_PACKAGES = ("weft-contracts", "weft-dataplane", "weft-engine", "weft-gguf")
_PASSED_OVER = shutil.ignore_patterns("__pycache__", "*.pyc")


@functools.cache
def requirements() -> tuple[str, ...]:
    """What the host needs of others."""
    return of_others(line for name in _PACKAGES for line in importlib.metadata.requires(name) or ())


def bundle(folder: Path) -> Path:
    """The folder with the host's code, made if it is not there. Takes some 20 ms, or 100. Raises OSError."""
    sources = {name: _source(name) for name in _PACKAGES}
    target = folder / f"code-{_digest(sources)}"
    if target.is_dir():
        return target
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".making-code-", dir=folder))
    try:
        for name, source in sources.items():
            shutil.copytree(source, making / source.name, ignore=_PASSED_OVER)
            about = making / f"{source.name}-{importlib.metadata.version(name)}.dist-info"
            about.mkdir()
            (about / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {importlib.metadata.version(name)}\n"
            )
            (about / "entry_points.txt").write_text(_entry_points(name))
        try:
            os.rename(making, target)
        except OSError:
            if not target.is_dir():  # another worker was first
                raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return target


def _source(name: str) -> Path:
    found = importlib.util.find_spec(name.replace("-", "_"))
    if found is None or found.origin is None:
        raise OSError(f"{name} lies in no folder")
    return Path(found.origin).parent


def _entry_points(name: str) -> str:
    """What the package is to others: vLLM takes its plugins by them."""
    return importlib.metadata.distribution(name).read_text("entry_points.txt") or ""


def _files(source: Path) -> Iterator[Path]:
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _digest(sources: dict[str, Path]) -> str:
    content = hashlib.sha256()
    for name, source in sources.items():
        content.update(f"{name} {importlib.metadata.version(name)}\0{_entry_points(name)}\0".encode())
        for path in _files(source):
            content.update(f"{path.relative_to(source)}\0{path.stat().st_size}\0".encode())
            content.update(path.read_bytes())
    return content.hexdigest()[:16]
