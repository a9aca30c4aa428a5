"""Runs the mutants of a package in a copy of the tree, one at a time."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

from weft_client.failure import Failure

from weft_devtools import tree
from weft_devtools.mutation.mutants import Mutant
from weft_devtools.mutation.packages import Package

Outcome = Literal["killed", "hung", "survived", "unreached", "unimportable"]
"""`hung` was ended at its time's bound and is noticed by it; `unreached`: no fast test comes to its line;
`unimportable`: the module can't be imported any more, which is not counted."""
_TRIALS = "weft_devtools.mutation.trials"
FIRST_RUN_S = 900.0
LEAST_CPU_S = 5.0
"""What a mutant has of the processor for its tests, besides three times what they took unchanged."""


@dataclass(frozen=True, slots=True)
class FirstRun:
    """What the package's tests did unchanged."""

    fast: int
    """Those that start no process, open no connection and take a few seconds of CPU at most."""
    others: int


class TimeUp(Exception):
    """The tests took longer unchanged than there was time."""


class Runner:
    """The process that tries mutants of one package. A context: its end ends the process and all of its children."""

    def __init__(
        self, copy: Path, package: Package, files: list[str], log: Path, first_run_s: float = FIRST_RUN_S
    ) -> None:
        """
        Args:
            copy: a copy of the tree, which is changed and restored.
            files: those of which mutants come.
            log: where pytest's output goes.
            first_run_s: how long the tests may take unchanged; entering raises TimeUp then.
        """
        self._first_run_s = first_run_s
        self._copy, self._package, self._files, self._log = copy, package, files, log
        self.first = FirstRun(0, 0)

    def __enter__(self) -> Self:
        settings = {
            "tests": [str(self._package.tests(self._copy))],
            "files": self._files,
            "shared": list(self._package.may_be_shared),
            "first_run_s": self._first_run_s,
            "least_cpu_s": LEAST_CPU_S,
        }
        env = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        env["PYTHONPATH"] = os.pathsep.join(str(each) for each in tree.source_paths(self._copy))
        env["HYPOTHESIS_STORAGE_DIRECTORY"] = str(self._copy.parent / "hypothesis")
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _TRIALS, json.dumps(settings)],
                cwd=self._copy,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        try:
            self._say_first()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def try_one(self, mutant: Mutant) -> Outcome:
        """How one mutant ends. Raises Failure when the process broke."""
        order = {"file": mutant.file, "line": mutant.line, "text": mutant.text}
        with suppress(BrokenPipeError):
            _pipe(self._process.stdin).write(json.dumps(order) + "\n")
            _pipe(self._process.stdin).flush()
        outcome = self._answer()["outcome"]
        if outcome == "broken":
            raise Failure(f"pytest broke on {mutant.file}:{mutant.line}:\n{self._last_words()}")
        return outcome

    def _say_first(self) -> None:
        first = self._answer()
        if first.get("late"):
            raise TimeUp
        if "broken" in first:
            raise Failure(f"{self._package.name}: {first['broken']}\n{self._last_words()}")
        if first["failed"]:
            test, why = next(iter(first["failed"].items()))
            raise Failure(f"{self._package.name}: {test} fails without any mutant: {why}")
        self.first = FirstRun(len(first["took"]), first["slow"])

    def _answer(self) -> dict[str, Any]:
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise Failure(f"{self._package.name}: the process that tries mutants has ended\n{self._last_words()}")
        return json.loads(line)

    def _last_words(self) -> str:
        return self._log.read_text()[-2000:]

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                _pipe(pipe).close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
