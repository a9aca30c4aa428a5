"""The launcher `./weft`: what it says where it can't work. That it installs is seen by running it at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from weft_cli.testing import tree

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
