"""The checks of `weft test`: each a command with a headline, all run, and the failed ones named at the end."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from weft_devtools import longest, longest_files, tree

_PYTEST_NO_TESTS = 5
_SIDE_BY_SIDE = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")
"""Four files at a time, on two cores: stories wait for half of their time and longer. Those of one file share what they
started. Files in their given order: by itself xdist puts those of few tests last, and these are the long stories."""
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
    beside: bool = False
    """It has one core's work for a minute, so it runs beside the checks that follow, and is told after them."""


def style_and_types() -> list[Check]:
    """What needs no test to run."""
    python = sys.executable
    return [
        Check("ruff check", (python, "-m", "ruff", "check", ".")),
        Check("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
        Check("pyright", (python, "-m", "pyright", "--project", ".", "--pythonpath", python), beside=True),
        Check("import rules", (python, "-c", _IMPORT_RULES)),
    ]


def pytest(root: Path, paths: Sequence[str], *, slow: bool) -> Check:
    """pytest over the tree, without the slow tests or with them alone."""
    marks = "slow" if slow else "not slow"
    chosen = paths or (longest.slow_first(root) if slow else longest.FOLDERS)
    argv = (sys.executable, "-m", "pytest", "-q", "-p", longest_files.__name__, *_SIDE_BY_SIDE, "-m", marks, *chosen)
    return Check("slow tests" if slow else "tests", argv, slow)


def run(checks: Sequence[Check], root: Path) -> list[str]:
    """Run all checks in the tree; the headlines of those that failed."""
    # Programs of the environment, such as node for pyright, are found beside its Python.
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    # Settings of a mesh that runs beside the tests are none of theirs.
    env = tree.compiling({k: v for k, v in env.items() if not k.startswith("WEFT_") or k in _KEPT})
    failed: list[str] = []
    with ExitStack() as stack:
        begun = [(each, stack.enter_context(_begun(each, root, env))) for each in checks if each.beside]
        for check in (each for each in checks if not each.beside):
            _say(check)
            began = time.monotonic()
            status = subprocess.run(check.argv, cwd=root, env=env, check=False, stdin=subprocess.DEVNULL).returncode
            _judge(check, status, time.monotonic() - began, failed)
        for check, (process, output, began) in begun:
            status = process.wait()
            _say(check)
            output.seek(0)
            print(output.read().decode(errors="replace"), end="")
            _judge(check, status, time.monotonic() - began, failed)
    return failed


@contextmanager
def _begun(
    check: Check, root: Path, env: Mapping[str, str]
) -> Generator[tuple[subprocess.Popen[bytes], IO[bytes], float]]:
    """A check that runs, what it says, and when it began. It ends with the block, whatever ends that."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            check.argv, cwd=root, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            yield process, output, time.monotonic()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _say(check: Check) -> None:
    print(f"\n== {check.headline} {'=' * (100 - len(check.headline))}", flush=True)


def _judge(check: Check, status: int, took: float, failed: list[str]) -> None:
    if status and not (check.may_be_empty and status == _PYTEST_NO_TESTS):
        failed.append(check.headline)
    print(f"-- {check.headline}: {'FAILED' if check.headline in failed else 'ok'}, {took:.0f} s", flush=True)
