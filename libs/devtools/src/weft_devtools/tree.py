"""The source tree that `weft test` checks."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from weft_client.failure import Failure


def root() -> Path:
    """The tree's folder. Raises Failure where weft runs from an installed package."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "pyproject.toml").is_file() and (folder / "services").is_dir():
            return folder
    raise Failure("this weft was installed as a package; its tests are in the source tree, beside ./weft")


def source_paths(root: Path) -> list[Path]:
    """The folders that Python imports the members from."""
    return sorted(each for pattern in ("libs/*/src", "services/*/src", "models/*/src") for each in root.glob(pattern))


def compiling(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which Python keeps what it compiled, which some machines' images forbid.

    Tests start thousands of processes that import the same files; vLLM's import alone takes 22 s of CPU instead of 8.
    """
    return {name: value for name, value in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def files(root: Path) -> list[str]:
    """All files of the tree that git knows or would take, relative to the root."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError) as e:
        raise Failure(f"git can't list the files of {root}: {e}; this needs a git checkout") from e
    return [name for name in listed.stdout.decode().split("\0") if name and (root / name).is_file()]


def copy(root: Path, to: Path) -> None:
    """Copy what git knows or would take."""
    for name in files(root):
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target)
