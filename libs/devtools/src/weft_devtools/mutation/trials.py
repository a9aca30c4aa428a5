"""The process that tries mutants of one package, in a copy of the tree. A program of its own: it must not import what
is under test, so it imports nothing of Weft's but three modules that know none of it, before it has forked.

Two kinds of child: the first runs the package's tests unchanged, and tells which are fast and which lines each reaches;
then one for each mutant, forked from a process that has imported all but the package.

    python -P -m weft_devtools.mutation.trials SETTINGS
        JSON: tests, files, first_run_s, shared (first names of modules to import before),
        least_cpu_s (what a mutant has for its tests besides three times what they took)

Answers on stdout, one JSON line each: what the first run found, then how each mutant that stdin names has ended.
"""

import importlib
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from weft_devtools.mutation.fast_tests import FastTests, MeasuredTests
from weft_devtools.mutation.forked import run_forked
from weft_devtools.mutation.reach import Reach


def _pytest(arguments: list[str], plugin: object | None) -> int:
    quiet = ["-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow"]
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins were imported before the fork
    # What a stopped test leaves behind is found while another one runs.
    for warning in ("PytestUnraisableExceptionWarning", "PytestUnhandledThreadExceptionWarning"):
        quiet += ["-W", f"ignore::pytest.{warning}"]
    return int(pytest.main([*quiet, *arguments], plugins=[] if plugin is None else [plugin]))


def _first_run(settings: dict[str, Any]) -> dict[str, Any]:
    def task(out: Any) -> int:
        plugin = MeasuredTests([str(Path(file).resolve()) for file in settings["files"]])
        status = _pytest(settings["tests"], plugin)
        json.dump({"status": status, **plugin.findings()}, out)
        return 0

    until = time.monotonic() + settings["first_run_s"]
    status, said = run_forked(task, settings["first_run_s"], None)
    if time.monotonic() > until:
        return {"broken": "the time was up", "late": True}
    if status != 0:
        return {"broken": f"the tests could not be run unchanged (status {status})"}
    found = json.loads(said)
    if found["failed"]:
        # It may have missed what a stopped test should have started: alone and unwatched it shows.
        def again(out: Any) -> int:
            return _pytest(list(found["failed"]), None)

        status, _ = run_forked(again, max(until - time.monotonic(), 1.0), None)
        if time.monotonic() > until:
            return {"broken": "the time was up", "late": True}
        if status == 0:
            found["slow"] += len(found["failed"])
            found["failed"] = {}
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
        return _pytest(["-x", *tests], FastTests())

    try:
        path.write_text(order["text"])
        os.utime(path, (before.st_mtime - 1000, before.st_mtime - 1000))
        status, _ = run_forked(task, 60 + 10 * cpu_s, cpu_s)
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
