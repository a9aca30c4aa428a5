"""A package index on a machine's loopback: pages as indexes have them, of files that lie here."""

import re
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from weft_embedded.bundle import other_packages
from weft_embedded.bundle.contents import LOCK, digest_of
from weft_testing.lan import Machine

from .bare_machines import PYTHON

PORT = 8081
"""Of a machine that has nothing else."""
URL = f"http://127.0.0.1:{PORT}/simple/"
_BOUND_S = 300.0


def filled(root: Path, folder: Path) -> None:
    """Put into a folder what a tree's lock names for this machine, and an index's pages that tell of it."""
    files = folder / "files"
    other_packages.fetch(root / LOCK, files)
    _sources(root / LOCK, files, folder / "fetched")
    names: dict[str, list[Path]] = {}
    for each in sorted(files.iterdir()):
        name = each.name.partition("-")[0] if each.suffix == ".whl" else each.name.rpartition("-")[0]
        names.setdefault(re.sub(r"[-_.]+", "-", name).lower(), []).append(each)
    for name, found in names.items():
        page = folder / "simple" / name / "index.html"
        page.parent.mkdir(parents=True)
        lines = [f'<a href="../../files/{each.name}#sha256={digest_of(each)}">{each.name}</a>' for each in found]
        page.write_text("<!DOCTYPE html><html><body>\n" + "\n".join(lines) + "\n</body></html>\n")


def _sources(lock: Path, files: Path, made: Path) -> None:
    """Of what there is no wheel of: the source that the lock names, and what that is built by."""
    text = lock.read_text()
    built = [each for each in files.glob("*.whl") if digest_of(each) not in text]
    wanted = [each.name.partition("-")[0].replace("_", "-") for each in built]
    for each in built:
        each.unlink()
    subprocess.run([str(PYTHON), "-m", "venv", str(made)], check=True, timeout=_BOUND_S)
    only = made / "sources.txt"
    only.write_text("".join(found[0] for name in wanted if (found := re.search(_entry(name), text, re.M | re.I))))
    assert len(wanted) == only.read_text().count("==")
    pip = [str(made / "bin" / "pip"), "download", "--quiet", "--disable-pip-version-check", "--dest", str(files)]
    for words in (["--no-deps", "--require-hashes", "-r", str(only)], ["setuptools", "wheel"]):
        subprocess.run([*pip, *words], check=True, timeout=_BOUND_S)


def _entry(name: str) -> str:
    return rf"^{re.escape(name)}==[^\n]*(?:\n +[^\n]*)*\n"


@contextmanager
def served(machine: Machine, folder: Path) -> Generator[None]:
    """An index at `URL`, for that machine alone."""
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), str(PORT)]
    with (folder.parent / "index.log").open("wb") as out:
        server = subprocess.Popen(machine.argv(command), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        _wait(machine, server)
        yield
    finally:
        server.terminate()
        server.wait(10)


def _wait(machine: Machine, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 30
    while subprocess.run(machine.argv(["curl", "-fsS", "-o", "/dev/null", URL]), capture_output=True).returncode:
        assert server.poll() is None
        assert time.monotonic() < deadline, "the index doesn't answer"
        time.sleep(0.1)
