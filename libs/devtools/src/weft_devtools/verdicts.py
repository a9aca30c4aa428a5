"""A pytest plugin for the sabotage tool: lists the stories, and tells how each test of a run ended.

Loaded with `-p weft_devtools.verdicts`; writes JSON lines to the file that `WEFT_VERDICTS` names.
"""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


def _write(**what: Any) -> None:
    with Path(os.environ["WEFT_VERDICTS"]).open("a") as out:
        out.write(json.dumps(what) + "\n")


def _sabotages(item: pytest.Item) -> list[str]:
    """The sabotages that must make a test fail."""
    marks: list[Any] = [mark.args for mark in item.iter_markers("sabotage")]
    return [str(args[0]) for args in marks if args]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name every collected test with its sabotages; keep those of the one that `WEFT_SABOTAGE` names, if it does."""
    for item in items:
        _write(story=item.nodeid.partition("[")[0], sabotages=_sabotages(item))
    if only := os.environ.get("WEFT_SABOTAGE"):
        items[:] = [item for item in items if only in _sabotages(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell each phase's outcome, and of a failure whether the story itself noticed."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    noticed = isinstance(error, AssertionError | TimeoutError | pytest.fail.Exception)
    _write(
        test=item.nodeid,
        phase=report.when,
        outcome=report.outcome,
        noticed=noticed,
        error="" if error is None else f"{type(error).__name__}: {error}"[:500],
    )
    return report
