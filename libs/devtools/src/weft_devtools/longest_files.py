"""A pytest plugin: which files of tests took longest, with what they started and ended, told at the end."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

MOST = 25
LEAST_S = 10.0
"""Seconds below which a file isn't told."""


def by_file(reports: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """Seconds of each file, the longest first, from a test's id and what one phase of it took."""
    total = defaultdict[str, float](float)
    for id, seconds in reports:
        total[id.partition("::")[0]] += seconds
    longest = sorted(total.items(), key=lambda each: -each[1])[:MOST]
    return [(file, seconds) for file, seconds in longest if seconds >= LEAST_S]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line for each."""
    reports = [each for those in terminalreporter.stats.values() for each in those if hasattr(each, "duration")]
    found = by_file((each.nodeid, each.duration) for each in reports)
    if found:
        terminalreporter.write_line("the longest files: " + ", ".join(f"{file} {taken:.0f} s" for file, taken in found))
