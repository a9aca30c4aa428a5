"""The checks of `weft test`: each a command with a headline, all run, and the failed ones named at the end."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PYTEST_NO_TESTS = 5
_SIDE_BY_SIDE = ("-n", "2", "--dist", "loadfile")
"""Two files at a time: tests wait for servers more than they compute. Those of one file share what they started."""
_IMPORT_RULES = "from importlinter.cli import lint_imports_command as main; main(['--no-logo'])"
"""import-linter can't be run as a module."""

_KEPT = ("WEFT_VENV", "WEFT_TEST_DEVICES")
"""Where this environment is; whether tests may use real devices (tests/devices)."""


@dataclass(frozen=True, slots=True)
class Check:
    """One command of the suite."""

    headline: str
    argv: tuple[str, ...]
    may_be_empty: bool = False
    """pytest says 5 where nothing was collected: that is no failure for these tests."""


def style_and_types() -> list[Check]:
    """What needs no test to run."""
    python = sys.executable
    return [
        Check("ruff check", (python, "-m", "ruff", "check", ".")),
        Check("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
        Check("pyright", (python, "-m", "pyright", "--project", ".", "--pythonpath", python)),
        Check("import rules", (python, "-c", _IMPORT_RULES)),
    ]


def pytest(paths: Sequence[str], *, slow: bool) -> Check:
    """pytest over the tree, without the slow tests or with them alone."""
    marks = "slow" if slow else "not slow"
    argv = (sys.executable, "-m", "pytest", "-q", *_SIDE_BY_SIDE, "-m", marks, *paths)
    return Check("slow tests" if slow else "tests", argv, slow)


def run(checks: Sequence[Check], root: Path) -> list[str]:
    """Run all checks in the tree; the headlines of those that failed."""
    # Programs of the environment, such as node for pyright, are found beside its Python.
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    # Settings of a mesh that runs beside the tests are none of theirs.
    env = {k: v for k, v in env.items() if not k.startswith("WEFT_") or k in _KEPT}
    failed: list[str] = []
    for check in checks:
        print(f"\n== {check.headline} {'=' * (100 - len(check.headline))}", flush=True)
        began = time.monotonic()
        status = subprocess.run(check.argv, cwd=root, env=env, check=False, stdin=subprocess.DEVNULL).returncode
        if status and not (check.may_be_empty and status == _PYTEST_NO_TESTS):
            failed.append(check.headline)
        took = time.monotonic() - began
        print(f"-- {check.headline}: {'FAILED' if check.headline in failed else 'ok'}, {took:.0f} s", flush=True)
    return failed
