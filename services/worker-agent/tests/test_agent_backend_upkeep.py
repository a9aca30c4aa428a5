"""What is installed ahead of need and tried again, and which environments go: case by case, then on a disk."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from weft_contracts.backend_wishes import (
    BackendWishes,
    after_fault,
    after_report,
    after_retired,
    after_use,
    after_wanted,
)
from weft_contracts.backends import BackendVariant
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.machine import InstallFailed
from weft_contracts.facts.node import BackendRetired, BackendWanted
from weft_contracts.facts.values import InstalledBackend
from weft_worker_agent.domain.backend_upkeep import (
    AheadTries,
    after_failure,
    is_due,
    removable,
    tries_of,
    untold_fault,
)
from weft_worker_agent.domain.install_faults import InstallFault
from weft_worker_agent.inbound.backends_loop import told, told_apart
from weft_worker_agent.outbound.backends import environments
from weft_worker_agent.outbound.backends.installer import Installer
from weft_worker_agent.outbound.backends.sources import PackageSources

ONE = BackendVariant(vendor="cpu", package="xllamacpp", version="1", requirements=("xllamacpp==1",), disk=1)
TWO = ONE.model_copy(update={"version": "2"})
WANTED = BackendWanted(engine="llama.cpp", variant=ONE)
KEY = "llama.cpp/cpu"
MADE = InstalledBackend(
    name="x-1", engine="llama.cpp", vendor="cpu", version="1", recipe=ONE.digest, unused_since=100.0
)
WISHES = after_wanted(BackendWishes(), WANTED, ())
AWAY = InstallFault("the index is away")


def failed(reason: str = "the index is away", *, final: bool = False) -> InstallFailed:
    return InstallFailed(engine="llama.cpp", vendor="cpu", recipe=ONE.digest, reason=reason, final=final)


def test_what_is_wanted_is_tried_at_once_and_after_a_failure_ever_later() -> None:
    tries = tries_of(WISHES, {})[KEY]
    waits: list[float] = []
    for _ in range(7):
        assert is_due(tries, tries.next_at, None)
        tries = after_failure(tries, AWAY, 1000.0)
        waits.append(tries.next_at - 1000.0)
        assert not is_due(tries, tries.next_at - 0.1, None)
    assert [1.0, 4.0, 16.0, 64.0, 256.0, 300.0, 300.0] == waits


def test_for_want_of_room_it_waits_for_room_alone() -> None:
    tries = after_failure(AheadTries(WANTED, failed=9), replace(AWAY, room=5_000), 0.0)
    assert [False, False, True, True] == [is_due(tries, 1e6, free) for free in (0, 4_999, 5_000, None)]
    assert 1.0 == tries.next_at


@pytest.mark.parametrize("fault", [replace(AWAY, permanent=True), replace(AWAY, local=True)])
def test_what_can_not_succeed_is_not_tried_until_it_is_asked_for_anew(fault: InstallFault) -> None:
    tries = {KEY: after_failure(AheadTries(WANTED), fault, 0.0)}
    assert not is_due(tries_of(WISHES, tries)[KEY], 1e9, None)
    # when the log was told, and then it was asked for anew
    fact = untold_fault(WISHES, tries)
    assert failed(final=True) == fact
    assert fact is not None
    wishes = after_fault(WISHES, fact)
    kept = tries_of(wishes, tries)
    assert not is_due(kept[KEY], 1e9, None)
    anew = tries_of(after_wanted(wishes, WANTED, ()), kept)
    # then
    assert is_due(anew[KEY], 0.0, None)


def test_a_reason_is_told_once_and_another_one_again() -> None:
    tries = {KEY: after_failure(AheadTries(WANTED), AWAY, 0.0)}
    wishes = after_fault(WISHES, failed())
    assert untold_fault(wishes, tries) is None
    tries = {KEY: after_failure(tries[KEY], InstallFault("no such version"), 0.0)}
    assert failed("no such version") == untold_fault(wishes, tries)
    assert untold_fault(BackendWishes(), tries) is None, "of what is wanted no more nothing is said"
    assert untold_fault(WISHES, tries_of(WISHES, {})) is None


def test_of_what_is_wanted_no_more_or_otherwise_no_try_is_remembered() -> None:
    tries = {KEY: after_failure(AheadTries(WANTED), AWAY, 0.0)}
    assert {} == tries_of(BackendWishes(), tries)
    other = after_wanted(WISHES, BackendWanted(engine="llama.cpp", variant=TWO), ())
    assert AheadTries(BackendWanted(engine="llama.cpp", variant=TWO)) == tries_of(other, tries)[KEY]
    assert {} == after_fault(other, failed()).faults, "a fault of what was wanted before is none of this"


RETIRED = BackendRetired(engine="llama.cpp", environments=("x-1",))


@pytest.mark.parametrize(
    ("fact", "made", "needed", "now", "goes"),
    [
        (RETIRED, MADE, (), 100.0 + 60.0, True),
        (RETIRED, MADE, (), 100.0 + 59.9, False),
        (RETIRED.model_copy(update={"at_once": True}), MADE, (), 100.0, True),
        (RETIRED, MADE, ("x-1",), 1e9, False),
        (RETIRED, MADE.model_copy(update={"unused_since": None}), (), 1e9, False),
        (RETIRED.model_copy(update={"environments": ("x-2",)}), MADE, (), 1e9, False),
    ],
)
def test_an_environment_goes_when_it_is_to_and_nothing_needed_it_for_long_enough(
    fact: BackendRetired, made: InstalledBackend, needed: tuple[str, ...], now: float, goes: bool
) -> None:
    wishes = after_retired(BackendWishes(), fact)
    assert (["x-1"] if goes else []) == removable(wishes, [made], needed, now, 60.0)


def test_what_was_to_go_stays_when_something_needs_it_again_and_is_forgotten_when_it_is_gone() -> None:
    wishes = after_retired(BackendWishes(), RETIRED)
    assert {} == after_use(wishes, ONE, [MADE]).retired
    assert {} == after_wanted(wishes, WANTED, [MADE]).retired
    assert {"x-1": False} == after_use(wishes, TWO, [MADE]).retired
    assert {"x-1": False} == after_report(wishes, [MADE]).retired
    assert {} == after_report(wishes, []).retired


def test_with_an_engine_its_wish_is_lifted_and_no_others() -> None:
    other = BackendWanted(engine="llama.cpp2", variant=ONE)
    wishes = after_fault(after_wanted(WISHES, other, ()), failed())
    lifted = after_retired(wishes, RETIRED.model_copy(update={"lifts": True}))
    assert ({"llama.cpp2/cpu": other}, {}) == (lifted.wanted, lifted.faults)
    assert wishes.wanted == after_retired(wishes, RETIRED).wanted


def test_what_is_there_has_not_failed() -> None:
    wishes = after_fault(WISHES, failed())
    assert {KEY: failed()} == after_report(wishes, []).faults
    assert {} == after_report(wishes, [MADE]).faults


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one environment, which is older than this test."""
    environment = tmp_path / "backends" / "x-1"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    environments.write_about(environment, "llama.cpp", ONE, None)
    os.utime(environment / environments.ABOUT, (100.0, 100.0))
    return tmp_path / "backends"


def an_installer(folder: Path) -> Installer:
    return Installer(folder, PackageSources(), silence_s=60.0, at_once=1)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_an_environment_says_what_it_was_made_by_what_it_takes_and_since_when_it_is_unused(folder: Path) -> None:
    (found,) = environments.installed(folder)
    assert (ONE.digest, 100.0) == (found.recipe, found.used_at)
    assert found.size is not None
    assert BUILTIN["llama.cpp"] == found.profile
    environments.mark_used(folder, ["x-1", "gone"])
    (used,) = environments.installed(folder)
    assert used.used_at > 1e9
    assert ["x-1"] == names(folder)
    assert 100.0 == told((found,), frozenset())[0].unused_since
    assert told((used,), frozenset({"x-1"}))[0].unused_since is None
    assert told_apart(told((found,), frozenset())) == told_apart(told((used,), frozenset()))
    assert told_apart(told((found,), frozenset())) != told_apart(told((found,), frozenset({"x-1"})))


async def test_what_is_held_is_never_removed_and_what_is_removed_can_not_be_held(folder: Path) -> None:
    installer = an_installer(folder)
    # given a host that is about to start in it
    held = installer.hold("x-1")
    assert held is not None
    # when it is to be removed, by this worker or another that shares the folder
    assert not await installer.remove("x-1")
    assert not await an_installer(folder).remove("x-1")
    assert ["x-1"] == names(folder)
    # when that host has ended
    os.close(held)
    assert await installer.remove("x-1")
    # then
    assert [] == names(folder)
    assert installer.hold("x-1") is None
    assert () == installer.installed


async def test_a_host_that_starts_while_an_environment_is_removed_finds_all_of_it_or_nothing(folder: Path) -> None:
    # given many who want to start in it, and one who wants to remove it
    for round in range(20):
        environment = folder / f"y-{round}"
        (environment / "bin").mkdir(parents=True)
        (environment / "bin" / "python").symlink_to(sys.executable)
        environments.write_about(environment, "llama.cpp", ONE, None)
        installer, other = an_installer(folder), an_installer(folder)
        # when they do so at the same time
        removing = asyncio.create_task(other.remove(environment.name))
        held: int | None = None
        while held is None and not removing.done():
            held = installer.hold(environment.name)
            await asyncio.sleep(0)
        removed = await removing
        # then exactly one has it, and who holds it has all of it
        assert removed != (held is not None)
        assert environments.read(environment) is None if removed else environments.read(environment) is not None
        if held is not None:
            os.close(held)


async def test_what_a_process_was_started_from_is_not_removed_even_if_nobody_holds_it(folder: Path) -> None:
    argv = [str(folder / "x-1" / "bin" / "python"), "-c", "print('up', flush=True); input()"]
    with psutil.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert b"up\n" == running.stdout.readline()
        installer = an_installer(folder)
        assert not await installer.remove("x-1")
        assert ["x-1"] == names(folder)
        running.kill()
        running.wait(30)
    assert await installer.remove("x-1")


async def test_what_another_worker_that_shares_the_folder_removed_is_seen(folder: Path) -> None:
    one, other = an_installer(folder), an_installer(folder)
    assert await one.remove("x-1")
    assert other.installed
    await other.look(())
    assert () == other.installed


def test_what_was_being_removed_when_its_worker_ended_goes_at_the_next_start(folder: Path) -> None:
    (folder / "x-1").rename(folder / ".removing-x-1-0")
    assert () == an_installer(folder).installed
    assert [] == names(folder)
