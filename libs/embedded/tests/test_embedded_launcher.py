"""The launcher `./weft`: what it says where it can't work. That it installs is seen by running it at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from weft_devtools import tree

LAUNCHER = tree.root() / "weft"


def _weft(tmp_path: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "WEFT_VENV": str(tmp_path / "venv"), **settings}
    argv = ["/bin/sh", str(LAUNCHER), "--version"]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)


def _program(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_that_is_too_old_is_named_with_its_remedy(tmp_path: Path) -> None:
    old = _program(tmp_path / "python3.8", "exit 1")
    said = _weft(tmp_path, WEFT_PYTHON=old)
    assert 1 == said.returncode
    assert "Weft needs Python 3.11 or newer" in said.stderr
    assert f"WEFT_PYTHON is {old}" in said.stderr


def test_a_missing_venv_module_is_named_with_its_remedy(tmp_path: Path) -> None:
    bare = _program(tmp_path / "python3", 'case "$2" in *ensurepip*) exit 1 ;; esac')
    said = _weft(tmp_path, WEFT_PYTHON=bare)
    assert 1 == said.returncode
    assert "has no venv module; install it (Debian, Ubuntu: apt install python3-venv)" in said.stderr


def test_a_folder_that_is_no_environment_of_wefts_is_not_touched(tmp_path: Path) -> None:
    # The launcher's own installer is there already, or this test would fetch it.
    if not (LAUNCHER.parent / ".weft" / "tool" / "weft-lock").exists():
        pytest.skip("the tests don't run in an environment that ./weft made")
    precious = tmp_path / "venv" / "precious"
    precious.mkdir(parents=True)
    said = _weft(tmp_path, WEFT_PYTHON=sys.executable)
    assert 1 == said.returncode
    assert "is not touched" in said.stderr
    assert precious.exists()


_UV = """case "$1 $2" in
*venv*) for last in "$@"; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
*pip\\ install*)
    case $* in *requirements.lock*) ;; *) exit 0 ;; esac
    printf '%s\\n' "Using Python 3.11.7 environment at: x" "Resolved 3 packages in 1.4s" >&2
    printf '%s\\n' "Downloading grpcio (7.0MiB)" "Downloading xllamacpp (32.3MiB)" >&2
    printf '%s\\n' "   Building nkeys==0.2.1" " Downloaded grpcio" >&2
    [ ! -e "$(dirname "$0")/broken" ] || { echo "error: no such host" >&2; exit 2; }
    printf '%s\\n' " Downloaded xllamacpp" "Prepared 3 packages in 9s" "Installed 3 packages in 1s" \\
        "Bytecode compiled 9 files in 8s" " + grpcio==1.0" >&2 ;;
esac"""
"""Says what uv says without a terminal. As the environment's Python it does nothing."""


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A source tree whose installer is there, a stand-in, and whose environment is not."""
    root = tmp_path / "fresh"
    for each in ("libs/a", "services/b", "models/c"):
        (root / each).mkdir(parents=True)
        (root / each / "pyproject.toml").write_text("[project]\n")
    for name in ("requirements-tool.lock", "requirements.lock", "requirements-dev.lock"):
        (root / name).write_text("a==1\nb==2\n")
    (root / "weft").write_text(LAUNCHER.read_text())
    tool = root / ".weft" / "tool"
    (tool / "bin").mkdir(parents=True)
    (tool / "weft-lock").write_text("a==1\nb==2\n")
    _program(tool / "bin" / "python", "exit 0")
    _program(tool / "bin" / "uv", _UV)
    return root


def _install(root: Path) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "WEFT_PYTHON": sys.executable}
    argv = ["/bin/sh", str(root / "weft"), "status"]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_without_a_terminal_the_installation_names_what_it_installs_and_how_far_it_is(fresh: Path) -> None:
    said = _install(fresh)
    assert 0 == said.returncode, said.stderr
    lines = [line.removeprefix("weft:").strip() for line in said.stderr.splitlines()]
    assert [
        "2 of 3: 2 packages that Weft stands on: fetched, installed, compiled",
        "found 3 packages in 1.4s; fetching them",
        "fetched grpcio (1 of 2 large ones)",
        "fetched xllamacpp (2 of 2 large ones)",
        "fetched 3 packages in 9s; putting them in place",
        "installed 3 packages in 1s; compiling them, which may take as long again",
        "compiled 9 files in 8s",
        "3 of 3: Weft's own packages (3)",
    ] == lines[:-1]
    assert lines[-1].startswith("the environment is ready, after ")
    assert "" == _install(fresh).stderr  # once


def test_an_installation_that_fails_says_why_and_is_taken_up_again(fresh: Path) -> None:
    broken = fresh / ".weft" / "tool" / "bin" / "broken"
    broken.touch()
    said = _install(fresh)
    assert 1 == said.returncode
    assert "error: no such host" in said.stderr
    assert "the installation failed" in said.stderr
    broken.unlink()
    assert 0 == _install(fresh).returncode


@pytest.mark.parametrize("call", ["./weft", "there/weft", "weft"])
def test_the_command_line_learns_how_it_was_called(tmp_path: Path, call: str) -> None:
    # given a checkout whose environment is whole, with a Python that only tells
    root = tmp_path / "there"
    (root / ".venv" / "bin").mkdir(parents=True)
    _program(root / "weft", LAUNCHER.read_text().partition("\n")[2])
    _program(root / ".venv" / "bin" / "python", 'echo "$WEFT_CALLED_AS"')
    for name in (
        "requirements-tool.lock",
        "requirements.lock",
        *(f"{each}/a/pyproject.toml" for each in ("libs", "services", "models")),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / ".venv" / "weft-lock").touch()
    (root / ".venv" / "weft-members").write_text(f"{root.resolve()}\n")
    env = {"PATH": f"{root}{os.pathsep}{os.environ['PATH']}" if call == "weft" else os.environ["PATH"]}
    cwd = root if call == "./weft" else tmp_path
    # when it is called
    said = subprocess.run([call, "up"], env=env, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    # then that word is handed on
    assert (call, "") == (said.stdout.strip(), said.stderr)
