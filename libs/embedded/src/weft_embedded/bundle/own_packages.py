"""Weft's own packages as wheels, and the locks: built from the source tree that runs, or taken from the bundle that it
was installed from."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from weft_embedded.bundle.contents import LOCK, OWN, TOOL_LOCK, BadBundle, listed

_BOUND_S = 120.0
_FOR_DEVELOPERS = ("weft_devtools-", "weft_testing-")
_EPOCH = "315532800"
"""1980: as far back as a wheel's times go, and the same for all."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the Weft that runs came from: a source tree, or a bundle that was installed."""

    tree: Path | None
    bundle: Path | None


def installation(prefix: Path | None = None) -> Installation:
    """Of this process. Raises BadBundle where it came from neither."""
    for folder in Path(__file__).resolve().parents:
        if (folder / LOCK).is_file() and (folder / "libs").is_dir() and (folder / "services").is_dir():
            return Installation(folder, None)
    beside = (prefix or Path(sys.prefix)).parent / "bundle"
    if (beside / LOCK).is_file():
        return Installation(None, beside)
    raise BadBundle(
        "this Weft was installed as single packages: other machines are installed from a source tree or a bundle"
    )


def fingerprint(source: Installation) -> str:
    """Changes whenever what `put` would make may have changed."""
    if source.bundle is not None:
        return str([(each.name, each.digest) for each in listed(source.bundle)])
    assert source.tree is not None
    found = [source.tree / LOCK, source.tree / TOOL_LOCK]
    for pattern in ("libs/*", "services/*", "models/*"):
        for member in source.tree.glob(pattern):
            found += [member / "pyproject.toml", *(member / "src").rglob("*")]
    seen = [(str(each), each.stat()) for each in sorted(found) if each.is_file() and "__pycache__" not in each.parts]
    return str([(name, status.st_mtime_ns, status.st_size) for name, status in seen])


def put(source: Installation, folder: Path) -> None:
    """Put wheels and locks into a folder. Raises BadBundle."""
    (folder / OWN).mkdir(parents=True, exist_ok=True)
    top = source.tree or source.bundle
    assert top is not None
    for lock in (LOCK, TOOL_LOCK):
        shutil.copyfile(top / lock, folder / lock)
    if source.bundle is not None:
        for each in sorted((source.bundle / OWN).glob("*.whl")):
            shutil.copyfile(each, folder / OWN / each.name)
        return
    _build(top, folder / OWN)


def _build(tree: Path, folder: Path) -> None:
    import uv  # here: its program is looked for when something is built

    # Nothing is fetched: the installer brings the build backend itself.
    command = ["build", "--all-packages", "--wheel", "--offline", "--no-cache", "--quiet", "--out-dir"]
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "SOURCE_DATE_EPOCH": _EPOCH,
    }
    with tempfile.TemporaryDirectory(prefix="weft-wheels-") as made:
        done = subprocess.run(
            [str(uv.find_uv_bin()), *command, made, str(tree)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=_BOUND_S,
        )
        if done.returncode:
            raise BadBundle(f"Weft's own packages could not be built: {done.stderr.strip()[-500:]}")
        for each in sorted(Path(made).glob("*.whl")):
            if not each.name.startswith(_FOR_DEVELOPERS):
                shutil.copyfile(each, folder / each.name)
