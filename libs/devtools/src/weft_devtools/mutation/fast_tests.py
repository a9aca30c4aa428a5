"""Pytest plugins: stop each test that isn't fast; measure the others. They import nothing of Weft's: see trials.py."""

import signal
import sys
import time
from collections.abc import Generator
from typing import Any

import pytest

TEST_CPU_S = 5.0
"""A test that takes longer, the first time, isn't among the fast ones."""
TEST_WALL_S = 20.0
"""The same by the clock, for one that waits for what was refused to it."""
_REFUSED = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "socket.bind", "socket.connect")
"""Audit events by which a test shows that it is none of the fast ones."""


class NotFast(BaseException):
    """A test starts a process, opens a connection or takes long. No code under test may catch it."""


class FastTests:
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


class MeasuredTests(FastTests):
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
