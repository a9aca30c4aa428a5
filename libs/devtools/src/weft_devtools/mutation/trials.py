"""The process that tries mutants of one package, in a copy of the tree. A program of its own: it must not import what
is under test, so it imports nothing of Weft's before it has forked.

Two kinds of child: the first runs the package's tests unchanged, and tells which are fast and which lines each reaches;
then one for each mutant, forked from a process that has imported all but the package.

    python trials.py SETTINGS    JSON: tests, files, first_run_s, shared (first names of modules to import before),
                                 least_cpu_s (what a mutant has for its tests besides three times what they took)

Answers on stdout, one JSON line each: what the first run found, then how each mutant that stdin names has ended.
"""

import ast
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

TEST_CPU_S = 5.0
"""A test that takes longer, the first time, isn't among the fast ones."""
TEST_WALL_S = 20.0
"""The same by the clock, for one that waits for what was refused to it."""
CHOSEN_S = 20.0
"""A mutant is shown to the fastest tests that reach its line, up to this sum of what they took."""
MEMORY_BYTES = 4 << 30
_REFUSED = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "socket.bind", "socket.connect")
"""Audit events by which a test shows that it is none of the fast ones."""
_PARENT = os.getppid()


class NotFast(BaseException):
    """A test starts a process, opens a connection or takes long. No code under test may catch it."""


class _Fast:
    """A pytest plugin: stops each test that isn't fast in the act."""

    def __init__(self) -> None:
        self._watching = self._inside = False
        signal.signal(signal.SIGALRM, lambda number, frame: self.refuse("it takes long"))
        self.refused = False
        """Whether the test that runs was stopped, whatever it made of that."""
        sys.addaudithook(self._audit)

    def pytest_configure(self) -> None:
        """Properties look for any failure by the same examples each time; the smallest one is of no use here."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings(), phases=phases, database=None, derandomize=True)
        settings.load_profile("mutants")

    def pytest_runtest_logstart(self) -> None:
        self._watching, self.refused = True, False

    def pytest_runtest_logfinish(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._watching = False

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._watching and event in _REFUSED:
            self.refuse(event)

    def refuse(self, why: str) -> None:
        """Stop the test that runs; again in a second, where it waits for what it didn't get."""
        self.refused = True
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        if self._inside:
            raise NotFast(why)

    def _phase(self, item: object) -> Generator[None, object, object]:
        self._inside = True
        try:
            return (yield)
        finally:
            self._inside = False

    pytest_runtest_setup = pytest.hookimpl(wrapper=True, tryfirst=True)(_phase)
    pytest_runtest_call = pytest.hookimpl(wrapper=True, tryfirst=True)(_phase)
    pytest_runtest_teardown = pytest.hookimpl(wrapper=True, tryfirst=True)(_phase)


class _FirstRun(_Fast):
    """Measures what each test takes and reaches."""

    def __init__(self, files: list[str]) -> None:
        super().__init__()
        from coverage import Coverage

        self._coverage = Coverage(data_file=None, include=files, config_file=False)
        self._measuring = False
        self._began = 0.0
        self.took: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.slow: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().pytest_runtest_logstart()
        if not self._measuring:  # not before: imports are many, and no function under test runs in them
            self._coverage.start()
            self._measuring = True
        self._coverage.switch_context(nodeid)
        self._began = time.process_time()
        signal.signal(signal.SIGPROF, lambda number, frame: self.refuse("it takes long"))
        signal.setitimer(signal.ITIMER_PROF, TEST_CPU_S)
        signal.setitimer(signal.ITIMER_REAL, TEST_WALL_S)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        signal.setitimer(signal.ITIMER_PROF, 0)
        super().pytest_runtest_logfinish()
        if self.refused:
            self.slow.add(nodeid)
        self.took[nodeid] = time.process_time() - self._began
        self._coverage.switch_context("")

    def pytest_exception_interact(self, node: Any, call: Any) -> None:
        error = call.excinfo.value
        if isinstance(error, NotFast):
            self.slow.add(node.nodeid)
        else:
            self.failed[node.nodeid] = f"{type(error).__name__}: {error}"[:300]

    def findings(self) -> dict[str, Any]:
        """Each fast test with its seconds; which of them reach each line; all that was imported."""
        if self._measuring:
            self._coverage.stop()
        data = self._coverage.get_data()
        fast = {test: took for test, took in self.took.items() if test not in self.slow and test not in self.failed}
        reached = {
            file: {
                line: [test for test in tests if test in fast] for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        failed = {test: why for test, why in self.failed.items() if test not in self.slow}
        return {
            "took": fast,
            "slow": len(self.took) - len(fast) - len(failed),
            "failed": failed,
            "reached": reached,
            "modules": {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()},
        }


def _pytest(arguments: list[str], plugin: object | None) -> int:
    quiet = ["-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow"]
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins were imported before the fork
    # What a stopped test leaves behind is found while another one runs.
    for warning in ("PytestUnraisableExceptionWarning", "PytestUnhandledThreadExceptionWarning"):
        quiet += ["-W", f"ignore::pytest.{warning}"]
    return int(pytest.main([*quiet, *arguments], plugins=[] if plugin is None else [plugin]))


def _child(task: Any, bound_s: float, cpu_s: float | None) -> tuple[int | None, str]:
    """Fork, run `task(write)`; its exit status, None where it was ended, and what it wrote."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        status = 70
        try:
            os.close(reading)
            if cpu_s is not None:
                seconds = int(cpu_s) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
            with os.fdopen(writing, "w") as out:
                status = task(out)
        except BaseException as e:
            print(f"the trial broke: {type(e).__name__}: {e}", flush=True)
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(writing)
    said: list[bytes] = []
    deadline = time.monotonic() + bound_s
    os.set_blocking(reading, False)
    try:
        while True:
            with suppress(BlockingIOError):
                while part := os.read(reading, 1 << 16):
                    said.append(part)
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline or os.getppid() != _PARENT:
                os.kill(process, signal.SIGKILL)
            time.sleep(0.005)
        with suppress(BlockingIOError):
            while part := os.read(reading, 1 << 16):
                said.append(part)
    finally:
        os.close(reading)
    return (os.WEXITSTATUS(status) if os.WIFEXITED(status) else None), b"".join(said).decode()


def _first_run(settings: dict[str, Any]) -> dict[str, Any]:
    def task(out: Any) -> int:
        plugin = _FirstRun([str(Path(file).resolve()) for file in settings["files"]])
        status = _pytest(settings["tests"], plugin)
        json.dump({"status": status, **plugin.findings()}, out)
        return 0

    until = time.monotonic() + settings["first_run_s"]
    status, said = _child(task, settings["first_run_s"], None)
    if time.monotonic() > until:
        return {"broken": "the time was up", "late": True}
    if status != 0:
        return {"broken": f"the tests could not be run unchanged (status {status})"}
    found = json.loads(said)
    if found["failed"]:
        # It may have missed what a stopped test should have started: alone and unwatched it shows.
        def again(out: Any) -> int:
            return _pytest(list(found["failed"]), None)

        status, _ = _child(again, max(until - time.monotonic(), 1.0), None)
        if time.monotonic() > until:
            return {"broken": "the time was up", "late": True}
        if status == 0:
            found["slow"] += len(found["failed"])
            found["failed"] = {}
    return found


class Reach:
    """Which fast tests reach a line."""

    def __init__(self, found: dict[str, Any]) -> None:
        self._took: dict[str, float] = found["took"]
        self._reached: dict[str, dict[str, list[str]]] = found["reached"]

    def tests(self, file: str, line: int) -> list[str]:
        """The fastest that reach the statement at this line, fastest first."""
        lines = self._reached.get(str(Path(file).resolve()), {})
        there = {test for number in _statement(Path(file), line) for test in lines.get(str(number), ())}
        chosen: list[str] = []
        left = CHOSEN_S
        for test in sorted(there, key=lambda each: (self._took[each], each)):
            left -= self._took[test]
            if chosen and left < 0:
                break
            chosen.append(test)
        return chosen

    def seconds(self, tests: list[str]) -> float:
        return sum(self._took[test] for test in tests)


def _statement(file: Path, line: int) -> range:
    """The lines of the smallest statement at this line, without the body of a compound one."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(file.read_bytes())):
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        body = cast(list[ast.stmt], getattr(node, "body", []))
        last = body[0].lineno - 1 if body else node.end_lineno or line
        if isinstance(node, ast.Match):
            last = max(last, line)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and line <= last:
            last = node.end_lineno or line  # a default: whoever calls it comes here
        if node.lineno <= line <= last:
            found = range(node.lineno, last + 1)
    return found


def _try(order: dict[str, Any], reach: Reach, least_cpu_s: float) -> dict[str, Any]:
    path = Path(order["file"])
    tests = reach.tests(order["file"], order["line"])
    if not tests:
        return {"outcome": "unreached"}
    original, before = path.read_bytes(), path.stat()
    cpu_s = least_cpu_s + 3 * reach.seconds(tests)

    def task(out: Any) -> int:
        sys.dont_write_bytecode = True  # what is compiled of a mutant is for this child alone
        return _pytest(["-x", *tests], _Fast())

    try:
        path.write_text(order["text"])
        os.utime(path, (before.st_mtime - 1000, before.st_mtime - 1000))
        status, _ = _child(task, 60 + 10 * cpu_s, cpu_s)
    finally:
        path.write_bytes(original)
        os.utime(path, (before.st_atime, before.st_mtime))
    # 4: a test's own module can't be collected any more, which unchanged it could.
    outcomes = {0: "survived", 1: "killed", 2: "unimportable", 4: "killed", None: "hung"}
    return {"outcome": outcomes.get(status, "broken"), "status": status, "tests": len(tests)}


def _import_what_is_shared(modules: dict[str, str], shared: set[str]) -> None:
    """Others' modules, and of the tree's own those that know nothing of the package."""
    tree = str(Path.cwd())
    for name, file in modules.items():
        if name.partition(".")[0] in shared or (file and not file.startswith(tree)):
            with suppress(Exception):
                importlib.import_module(name)


def main() -> None:
    """Serve until stdin ends."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what pytest says goes to the log

    def answer(what: dict[str, Any]) -> None:
        print(json.dumps(what), file=answers, flush=True)

    found = _first_run(settings)
    answer({name: value for name, value in found.items() if name not in ("reached", "modules")})
    if "broken" in found or found["failed"]:
        return
    _import_what_is_shared(found["modules"], set(settings["shared"]))
    reach = Reach(found)
    for line in sys.stdin:
        answer(_try(json.loads(line), reach, settings["least_cpu_s"]))


if __name__ == "__main__":
    main()
