"""Draws mutants, tries them in a copy of the tree, tells which lived."""

import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from weft_client.failure import Exit, Failure

from weft_devtools import shares, tree
from weft_devtools.mutation import equivalents
from weft_devtools.mutation.mutants import Mutant, mutants
from weft_devtools.mutation.packages import Package, named, packages
from weft_devtools.mutation.runner import FIRST_RUN_S, Outcome, Runner, TimeUp

WANTED = 0.9
"""Of those that aren't equivalent so many must be noticed."""
_LIVED: tuple[Outcome, ...] = ("survived", "unreached")
_DIED: tuple[Outcome, ...] = ("killed", "hung")


@dataclass(frozen=True, slots=True)
class Draw:
    """Which mutants are tried."""

    names: tuple[str, ...] = ()
    """Packages, by name; all where there is none."""
    changed: str | None = None
    """Only those of files that differ from this commit."""
    part: str = "1/1"
    seed: str = ""
    limit_s: float | None = None
    """No further one is begun after this time."""


@dataclass(slots=True)
class Tally:
    """How a package's mutants ended."""

    package: str
    outcomes: Counter[Outcome] = field(default_factory=lambda: Counter[Outcome]())
    equivalent: int = 0
    lived: list[Mutant] = field(default_factory=lambda: list[Mutant]())

    @property
    def killed(self) -> int:
        return sum(self.outcomes[each] for each in _DIED)

    @property
    def counted(self) -> int:
        return self.killed + len(self.lived)


def run(root: Path, draw: Draw) -> list[Tally]:
    """Try what is drawn, and tell as it goes. The tree itself stays as it is.

    Raises:
        Failure: the tool broke: a test fails unchanged, an equivalent is gone, pytest couldn't run.
    """
    listed = equivalents.read(root)
    equivalents.check(root, listed)
    began = time.monotonic()
    chosen = named(packages(root), draw.names)
    all_of_them = [
        mutant
        for package in chosen
        for file in _files(root, package, draw)
        for mutant in mutants(root, package.name, file)
    ]
    drawn = shares.share(all_of_them, draw.part, draw.seed, lambda mutant: mutant.key)
    print(f"{len(drawn)} mutants, drawn from {len(all_of_them)} of {len({each.file for each in all_of_them})} files")
    tallies = {package.name: Tally(package.name) for package in chosen}
    for mutant in [each for each in drawn if any(one.covers(each) for one in listed)]:
        tallies[mutant.package].equivalent += 1
        drawn.remove(mutant)
    if drawn:
        try:
            _try_all(root, chosen, drawn, tallies, draw.limit_s and began + draw.limit_s)
        except BaseException:
            print("ended before all were tried; until then:")
            tell([tally for tally in tallies.values() if tally.counted])
            raise
    return [tally for tally in tallies.values() if tally.counted or tally.equivalent]


def tell(tallies: Sequence[Tally]) -> float:
    """Say each package's figure and that of all; the share that died of those that count."""
    for each in tallies:
        print(f"{each.package:<16} {_figure(each.killed, each.counted)}{_besides(each)}")
    killed, counted = sum(each.killed for each in tallies), sum(each.counted for each in tallies)
    print(f"{'in all':<16} {_figure(killed, counted)}", flush=True)
    return killed / counted if counted else 1.0


def _figure(killed: int, counted: int) -> str:
    return f"{killed} of {counted} were noticed" + (f" ({killed / counted:.0%})" if counted else "")


def _besides(tally: Tally) -> str:
    besides = {
        "ended at the time's bound": tally.outcomes["hung"],
        "reached by no fast test": tally.outcomes["unreached"],
        "equivalent": tally.equivalent,
        "can't be imported": tally.outcomes["unimportable"],
    }
    said = ", ".join(f"{number} {what}" for what, number in besides.items() if number)
    return f"; {said}" if said else ""


def _try_all(
    root: Path, chosen: Sequence[Package], drawn: Sequence[Mutant], tallies: dict[str, Tally], until: float | None
) -> None:
    order = list(dict.fromkeys(mutant.package for mutant in drawn))  # as drawn, so that a limit cuts by chance
    by_name = {package.name: package for package in chosen}
    with _ended_by_signals(), tempfile.TemporaryDirectory(prefix="weft-mutants-") as folder:
        copy = Path(folder).resolve() / "tree"
        tree.copy(root, copy)
        for number, name in enumerate(order):
            own = [mutant for mutant in drawn if mutant.package == name]
            # Each package has its part of the time that is left.
            share = (
                None if until is None else time.monotonic() + max(until - time.monotonic(), 0) / (len(order) - number)
            )
            _try_package(copy, by_name[name], own, tallies[name], share)


def _try_package(copy: Path, package: Package, own: Sequence[Mutant], tally: Tally, until: float | None) -> None:
    log = copy.parent / f"{package.name}.log"
    began = time.monotonic()
    first_run_s = FIRST_RUN_S if until is None else until - began
    if first_run_s <= 0:
        return
    try:
        _try_by(Runner(copy, package, sorted({each.file for each in own}), log, first_run_s), own, tally, until)
    except TimeUp:
        print(f"{package.name}: the time was up before its tests had run unchanged", flush=True)


def _try_by(runner: Runner, own: Sequence[Mutant], tally: Tally, until: float | None) -> None:
    began = time.monotonic()
    with runner:
        first = runner.first
        print(
            f"{tally.package}: {len(own)} mutants against {first.fast} fast tests ({first.others} are not), "
            f"{time.monotonic() - began:.0f} s to measure them",
            flush=True,
        )
        for number, mutant in enumerate(own):
            if until is not None and time.monotonic() > until:
                print(f"{tally.package}: the time is up after {number} of {len(own)}")
                return
            outcome = runner.try_one(mutant)
            tally.outcomes[outcome] += 1
            if outcome in _LIVED:
                tally.lived.append(mutant)
                print(_survivor(mutant, outcome), flush=True)


def _survivor(mutant: Mutant, outcome: Outcome) -> str:
    how = "LIVED" if outcome == "survived" else "LIVED, no fast test comes here"
    becomes = f"\n    + {mutant.after}" if mutant.after else ""
    return f"{mutant.file}:{mutant.line}: {how}\n    - {mutant.before}{becomes}"


def _files(root: Path, package: Package, draw: Draw) -> list[str]:
    files = package.files(root)
    if draw.changed is None:
        return files
    command = ["git", "diff", "--name-only", "-z", "--relative", draw.changed, "--", *map(str, package.rules)]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=60)
    if listed.returncode:
        raise Failure(f"--changed {draw.changed}: {listed.stderr.strip()}", Exit.USAGE)
    new = ["git", "ls-files", "-z", "--others", "--exclude-standard", "--", *map(str, package.rules)]
    untracked = subprocess.run(new, cwd=root, capture_output=True, text=True, check=True, timeout=60)
    changed = {*listed.stdout.split("\0"), *untracked.stdout.split("\0")}
    return [file for file in files if file in changed]


@contextmanager
def _ended_by_signals() -> Generator[None]:
    """A polite end ends children and the copy too, as Ctrl-C does."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
