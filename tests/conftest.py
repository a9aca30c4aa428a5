"""Counts the decisions that stories' meshes made and that were computed again: all together, by kind, at the end."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from weft_contracts.commit import Recorded
from weft_testing.decisions_again import DECISIONS, SERVICES

_MESHES = 5
"""So many that made no decision are no chance."""
_KINDS = ("placed", "unplaceable", "evicted", "scaled", "sized", "rolled_back")
_all = Counter[str]()


def _of_the_reconciler(log: Sequence[Recorded]) -> tuple[Mapping[str, int], Sequence[str]]:
    from weft_reconciler.domain.verify import verify  # every test's process imports this module, few need that

    found = verify(log)
    return found.decisions, found.mismatches


SERVICES.append(_of_the_reconciler)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What one of several workers counted."""
    _all.update(getattr(node, "workeroutput", {}).get("decisions", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands on what it counted; who started them fails where many meshes decided nothing."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["decisions"] = dict(DECISIONS)
        return
    _all.update(DECISIONS)
    if _all["meshes"] >= _MESHES and not (_all["placed"] and _all["unplaceable"] and _all["scaled"]):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line."""
    if _all["meshes"]:
        told = ", ".join(f"{_all[kind]} {kind}" for kind in _KINDS)
        terminalreporter.write_line(f"decisions of {_all['meshes']} meshes computed again from their logs: {told}")
