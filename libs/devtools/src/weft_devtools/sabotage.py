"""Sabotage: breaks what a story of tests/integration is about, in a copy of the tree, and demands that it notices.

A story names its patches: `@pytest.mark.sabotage("name")` stands for `tests/integration/sabotage/<name>.patch`.
Where the mark is on some of a story's cases (`pytest.param(..., marks=...)`), only those are run with the patch.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from weft_client.failure import Exit, Failure

from weft_devtools import shares, tree

STORIES = Path("tests") / "integration"
PATCHES = STORIES / "sabotage"
STORY_TIMEOUT_S = 420.0
SIDE_BY_SIDE = 2
"""A story that notices has mostly waited for what didn't come."""
_COLLECT_TIMEOUT_S = 120.0
_LOOK_S = 1.0


@dataclass(frozen=True, slots=True, order=True)
class Sabotage:
    """One story with one patch that must make it fail."""

    name: str
    story: str
    """pytest's id of the test, without its parameters: any of its cases that bear the mark may notice."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a sabotaged story ended. `problem` is None when it noticed, as it must."""

    sabotage: Sabotage
    problem: str | None
    noticed: str = ""
    """The failure by which it noticed."""


def find(root: Path) -> list[Sabotage]:
    """All sabotages of the tree, by name.

    Raises:
        Failure: a story without a sabotage, a sabotage without its patch, a patch that no story names.
    """
    if not any((root / STORIES).glob("test_*.py")):
        raise Failure(f"there is no story in {root / STORIES}")
    lines, output = _pytest(root, ["--collect-only", "-q", str(STORIES)], _COLLECT_TIMEOUT_S)
    stories: dict[str, set[str]] = {}
    for line in lines:
        if "story" in line:  # one line a case
            stories.setdefault(line["story"], set()).update(line["sabotages"])
    if not stories:
        raise Failure(f"the stories can't be collected:\n{output}")
    if naked := sorted(story for story, names in stories.items() if not names):
        raise Failure(f"these stories have no sabotage: {', '.join(naked)}; mark each: @pytest.mark.sabotage(NAME)")
    found = sorted(Sabotage(name, story) for story, names in stories.items() for name in names)
    patches = {each.stem for each in (root / PATCHES).glob("*.patch")}
    if missing := sorted({each.name for each in found} - patches):
        raise Failure(f"these sabotages have no patch in {PATCHES}: {', '.join(missing)}")
    if idle := sorted(patches - {each.name for each in found}):
        raise Failure(f"no story names these patches of {PATCHES}: {', '.join(idle)}")
    return found


def named(all_of_them: Sequence[Sabotage], names: Sequence[str]) -> list[Sabotage]:
    """Those of these names; all of them where no name is given. Raises Failure for a name that none bears."""
    if unknown := sorted(set(names) - {each.name for each in all_of_them}):
        there = ", ".join(sorted({each.name for each in all_of_them}))
        raise Failure(f"there is no sabotage {', '.join(unknown)}; there are {there}", Exit.USAGE)
    return [each for each in all_of_them if not names or each.name in names]


def share(all_of_them: Sequence[Sabotage], part: str, seed: str) -> list[Sabotage]:
    """The K-th of N parts ("K/N"), dealt out by a shuffle that the seed alone decides. Parts differ by one at most."""
    return sorted(shares.share(all_of_them, part, seed, lambda each: f"{each.name}\0{each.story}"))


def run(root: Path, sabotages: Sequence[Sabotage]) -> list[Verdict]:
    """Try each sabotage in a copy of its own, two at a time; says how each one ended as it goes."""
    places: SimpleQueue[int] = SimpleQueue()
    for place in range(SIDE_BY_SIDE):
        places.put(place)
    stop = threading.Event()

    def tried(each: Sabotage) -> tuple[Verdict, float]:
        place, began = places.get(), time.monotonic()
        try:
            return _try(root, each, place, stop), time.monotonic() - began
        finally:
            places.put(place)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        running: list[Future[tuple[Verdict, float]]] = [pool.submit(tried, each) for each in sabotages]
        try:
            for ended in as_completed(running):
                verdict, took = ended.result()
                each, how = verdict.sabotage, verdict.problem or f"noticed: {verdict.noticed}"
                word = "ERROR" if verdict.problem else "ok"
                print(f"{word:<5} {each.name}  ({each.story}, {took:.0f} s)\n      {how}", flush=True)
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [each.result()[0] for each in running]


def _try(root: Path, sabotage: Sabotage, place: int, stop: threading.Event) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="weft-sabotage-") as folder:
        copy = Path(folder).resolve() / "tree"
        tree.copy(root, copy)
        patch = root / PATCHES / f"{sabotage.name}.patch"
        # Outside a repository git apply works on the folder itself; it must not find one above.
        applied = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", str(patch)],
            cwd=copy,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(copy.parent)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if applied.returncode:
            return Verdict(sabotage, f"the patch doesn't apply: {applied.stderr.strip()}")
        if not _differs(root, copy, patch):
            return Verdict(sabotage, "the patch changes nothing")
        try:
            only = {"WEFT_SABOTAGE": sabotage.name, "WEFT_TEST_PLACE": f"{place}/{SIDE_BY_SIDE}"}
            lines, output = _pytest(copy, ["-q", "-x", sabotage.story], STORY_TIMEOUT_S, only, stop)
        except TimeoutError:
            return Verdict(sabotage, f"the story hung: it has no end of its own within {STORY_TIMEOUT_S:g} s")
        return judge(sabotage, lines, output)


def judge(sabotage: Sabotage, lines: Sequence[dict[str, Any]], output: str) -> Verdict:
    """What the lines of the plugin `verdicts` say of one sabotaged run."""
    phases = [line for line in lines if story_of(line.get("test", "")) == sabotage.story]
    failed = [line for line in phases if line["outcome"] == "failed"]
    if not phases:
        return Verdict(sabotage, f"the story did not run:\n{output[-2000:]}")
    if not failed:
        skipped = not any(line["phase"] == "call" and line["outcome"] == "passed" for line in phases)
        return Verdict(sabotage, "the story was skipped" if skipped else "the story passes all the same")
    first = failed[0]
    if first["phase"] == "call" and first["noticed"]:
        return Verdict(sabotage, None, first["error"].splitlines()[0][:200])
    return Verdict(sabotage, f"the story broke in its {first['phase']} instead of noticing: {first['error']}")


def story_of(test: str) -> str:
    """A test's id without its parameters."""
    return test.partition("[")[0]


def _differs(root: Path, copy: Path, patch: Path) -> bool:
    named = [line[6:].strip() for line in patch.read_text().splitlines() if line.startswith(("+++ b/", "--- a/"))]
    return any(_content(root / name) != _content(copy / name) for name in named)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _pytest(
    folder: Path,
    arguments: list[str],
    timeout_s: float,
    settings: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
) -> tuple[list[dict[str, Any]], str]:
    """Run pytest in `folder` on that folder's sources; what the plugin wrote, and pytest's own output.

    `settings`: WEFT_SABOTAGE names one, and tests without its mark are left out; WEFT_TEST_PLACE says which of how
    many ("0/2") runs it is, so that each chooses ports of its own. `stop` ends it.

    Raises:
        TimeoutError: it had to be ended.
    """
    own = [str(each) for each in tree.source_paths(folder)]
    # The plugin lies apart: the copy's own CLI may be what was broken.
    with tempfile.TemporaryDirectory(prefix="weft-verdicts-") as out:
        verdicts, plugin = Path(out) / "verdicts", Path(out) / "weft_verdicts.py"
        verdicts.touch()
        shutil.copy(Path(__file__).with_name("verdicts.py"), plugin)
        env = tree.compiling({k: v for k, v in os.environ.items() if not k.startswith("WEFT_")})
        env |= {
            "PYTHONPATH": os.pathsep.join([*own, out, os.environ.get("PYTHONPATH", "")]),
            "WEFT_VERDICTS": str(verdicts),
            **(settings or {}),
        }
        command = [sys.executable, "-m", "pytest", "-p", "weft_verdicts", "-p", "no:cacheprovider", *arguments]
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        until = time.monotonic() + timeout_s
        while True:
            try:
                output, _ = process.communicate(timeout=_LOOK_S)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() < until and not (stop is not None and stop.is_set()):
                    continue
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its meshes see their lifelines close
            process.communicate()
            raise TimeoutError
        return [json.loads(line) for line in verdicts.read_text().splitlines()], output
