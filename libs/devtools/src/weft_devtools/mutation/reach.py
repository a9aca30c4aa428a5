"""Which fast tests come to a line, by what each reached unchanged. It imports nothing of Weft's: see trials.py."""

import ast
from pathlib import Path
from typing import Any, cast

CHOSEN_S = 20.0
"""A mutant is shown to the fastest tests that reach its line, up to this sum of what they took."""


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
