"""Installs into /opt/weft what a lock names, by hash, and compiles it: the file system of a container is read-only.

    install.py UV LOCK OWN

OWN holds this tree's wheels; `packages.py` says where the others come from.
"""

import os
import py_compile
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import TemporaryDirectory

import packages

ENVIRONMENT = Path("/opt/weft")
CONSTRAINTS = Path(__file__).with_name("build-constraints.txt")
FROM_SOURCE = "nkeys"
"""It comes as source alone; build-constraints.txt says what builds it."""
_NEVER_RUN = {"test", "tests", "idlelib", "lib2to3", "tkinter", "turtledemo", "ensurepip", "pydoc_data"}
_AT_ONCE = 8


def not_compiled(*folders: Path) -> Iterator[str]:
    """Sources without bytecode. Those of a layer below have theirs, and writing it again would put it here, too."""
    for folder in folders:
        for source in sorted(folder.rglob("*.py")):
            unused = folder != ENVIRONMENT and _NEVER_RUN & set(source.relative_to(folder).parts)
            if not unused and not os.path.exists(cache_from_source(str(source))):
                yield str(source)


def compiled(source: str) -> None:
    """Bytecode that holds whatever the source's time is; what is no Python of this version stays as it is."""
    py_compile.compile(source, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


def without_notes(environment: Path) -> None:
    """Forget what uv notes beside a package that it built itself, with the time: no two builds have the same."""
    for note in environment.glob("lib/python*/site-packages/*.dist-info/uv_cache.json"):
        record = note.with_name("RECORD")
        own = f"{note.parent.name}/{note.name},".encode()
        lines = record.read_bytes().splitlines(keepends=True)
        record.write_bytes(b"".join(line for line in lines if not line.startswith(own)))
        note.unlink()


def main(uv: str, lock: str, own: str) -> None:
    """Make the environment where there is none, and add to it."""
    with TemporaryDirectory(dir=packages.CACHE) as scratch:  # of /tmp a layer would keep what is left there
        install(uv, lock, own, packages.environment() | {"TMPDIR": scratch})
    without_notes(ENVIRONMENT)
    with ProcessPoolExecutor(min(os.cpu_count() or 1, _AT_ONCE)) as pool:
        list(pool.map(compiled, not_compiled(ENVIRONMENT, Path(sysconfig.get_path("stdlib"))), chunksize=32))


def install(uv: str, lock: str, own: str, env: dict[str, str]) -> None:
    """What the lock names, without bytecode."""
    python = str(ENVIRONMENT / "bin/python")
    if not os.path.exists(python):
        made = [uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(ENVIRONMENT)]
        subprocess.run(made, env=env, check=True)
    asked = [uv, "pip", "install", "--quiet", "--python", python, "--no-deps", "--require-hashes"]
    built = ["--only-binary", ":all:", "--no-binary", FROM_SOURCE, "--build-constraints", str(CONSTRAINTS)]
    subprocess.run([*asked, *built, *packages.flags(), "--find-links", own, "-r", lock], env=env, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
