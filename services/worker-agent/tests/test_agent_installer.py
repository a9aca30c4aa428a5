"""Installing an engine, by the real installer from a folder of wheels: whole or not at all, and a reason if not."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from weft_contracts.backends import BackendVariant, SystemNeed, builtin_recipes
from weft_testing.wheels import wheels_of_installed, write_wheel
from weft_worker_agent.outbound.backends import environments, host_code
from weft_worker_agent.outbound.backends.first_run import InstallFailed
from weft_worker_agent.outbound.backends.installer import Installer, Interpreter
from weft_worker_agent.outbound.backends.sources import PackageSources

ECHO = Path(__file__).parents[3] / "tests" / "packages" / "echo" / "weft_echo"
VARIANT = BackendVariant(vendor="cpu", package="weft-echo", version="1.0", requirements=("weft-echo==1.0",), disk=1)


def echo_wheel(folder: Path, version: str = "1.0", requires: tuple[str, ...] = ()) -> Path:
    files = {f"weft_echo/{path.name}": path.read_text() for path in ECHO.glob("*.py")}
    entry = "[weft.engines]\necho = weft_echo.profile:PROFILE\n"
    return write_wheel(folder, "weft-echo", version, files, requires, entry_points=entry)


@pytest.fixture(scope="session")
def hosts_wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the engine host needs of others."""
    folder = tmp_path_factory.mktemp("wheels")
    wheels_of_installed(folder, host_code.requirements())
    return folder


@pytest.fixture
def wheels(hosts_wheels: Path, tmp_path: Path) -> Path:
    """A folder with all that the echo needs."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for wheel in hosts_wheels.iterdir():
        os.link(wheel, folder / wheel.name)
    echo_wheel(folder)
    return folder


@asynccontextmanager
async def an_installer(folder: Path, wheels: Path, silence_s: float = 60.0) -> AsyncGenerator[Installer]:
    made = Installer(folder, PackageSources(offline=wheels), silence_s=silence_s, at_once=2)
    try:
        yield made
    finally:
        await made.close()


def left_behind(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".making")]


def where_from(how: Interpreter) -> list[str]:
    """Whence an installed engine's interpreter takes the host's code and the engine's."""
    asks = "import weft_engine, weft_echo; print(weft_engine.__file__, weft_echo.__file__)"
    said = subprocess.run(
        [how.python, "-c", asks], env=dict(how.environment), capture_output=True, text=True, check=True
    )
    return said.stdout.split()


async def refused(installer: Installer, variant: BackendVariant = VARIANT) -> InstallFailed:
    with pytest.raises(InstallFailed) as failed:
        await installer.want("echo", variant)
    return failed.value


async def test_an_engine_is_installed_once_for_all_who_want_it_and_found_at_the_next_start(
    tmp_path: Path, wheels: Path
) -> None:
    folder = tmp_path / "backends"
    async with an_installer(folder, wheels) as installer:
        # when two want it at the same time
        first, second = await asyncio.gather(installer.want("echo", VARIANT), installer.want("echo", VARIANT))
        # then it is there once, and can be run with this worker's own code of the host
        assert first == second
        assert ("echo", "cpu", "1.0", "echo") == (first.engine, first.vendor, first.version, first.profile.name)
        assert [first.name] == [one.name for one in installer.installed]
        assert not installer.installs
        how = await installer.interpreter(first)
        engine, echo = where_from(how)
        assert str(folder / "code-") in engine
        assert str(folder / first.name) in echo
    assert [] == left_behind(folder)
    async with an_installer(folder, tmp_path / "gone") as later:
        assert (first,) == later.installed
        assert first == await later.want("echo", VARIANT)


async def test_another_content_lies_in_another_environment(tmp_path: Path, wheels: Path) -> None:
    folder = tmp_path / "backends"
    echo_wheel(wheels, "2.0")
    other = VARIANT.model_copy(update={"version": "2.0", "requirements": ("weft-echo==2.0",)})
    async with an_installer(folder, wheels) as installer:
        one, two = await asyncio.gather(installer.want("echo", VARIANT), installer.want("echo", other))
    for made in (one, two):
        package = next((folder / made.name).rglob("weft_echo/adapter.py"))
        assert 1 == package.stat().st_nlink, "what one writes into its files, no other sees"


Change = Callable[[Path], BackendVariant]


def of_wrong_hash(wheels: Path) -> BackendVariant:
    return VARIANT.model_copy(update={"hashes": {"weft-echo==1.0": ("sha256:" + "0" * 64,)}})


def of_no_such_version(wheels: Path) -> BackendVariant:
    return VARIANT.model_copy(update={"requirements": ("weft-echo==3.0",)})


def of_a_conflict(wheels: Path) -> BackendVariant:
    echo_wheel(wheels, requires=("pydantic<1",))
    return VARIANT


def of_another_version(wheels: Path) -> BackendVariant:
    return VARIANT.model_copy(update={"version": "1.1"})


def of_another_build(wheels: Path) -> BackendVariant:
    return VARIANT.model_copy(update={"build": "rocm"})


def of_no_profile(wheels: Path) -> BackendVariant:
    write_wheel(wheels, "weft-echo", "1.0", {"weft_echo/__init__.py": ""})
    return VARIANT


def of_a_missing_library(wheels: Path) -> BackendVariant:
    need = SystemNeed(kind="library", name="libnobody-has.so.9", say="install libnobody-has")
    return VARIANT.model_copy(update={"needs": (need,)})


def of_vllm_for_nvidia(wheels: Path) -> BackendVariant:
    """What vLLM's recipe needs of a machine with NVIDIA's devices, which the machines of these tests have not."""
    nvidia = next(each for each in builtin_recipes()["vllm"].variants if each.vendor == "nvidia")
    return VARIANT.model_copy(update={"needs": nvidia.needs})


def lacks(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return True
    return False


NO_DRIVER = pytest.mark.skipif(not (sys.platform == "linux" and lacks("libcuda.so.1")), reason="its driver is here")


@pytest.mark.parametrize(
    ("change", "words", "permanent", "local"),
    [
        (of_wrong_hash, "Hash mismatch for `weft-echo==1.0`", False, False),
        (of_no_such_version, "there is no version of weft-echo==3.0", False, False),
        (of_a_conflict, "requirements are unsatisfiable", True, False),
        (of_another_version, "its package weft-echo has the version 1.0", True, True),
        (of_another_build, "weft-echo 1.0 is no rocm build: name an index that has one", False, True),
        (of_no_profile, "there is no engine 'echo' in this environment", False, True),
        (of_a_missing_library, "install libnobody-has", False, True),
        pytest.param(of_vllm_for_nvidia, "NVIDIA_DRIVER_CAPABILITIES=compute,utility", False, True, marks=NO_DRIVER),
    ],
)
async def test_what_can_not_be_installed_says_why_and_leaves_nothing(
    tmp_path: Path, wheels: Path, change: Change, words: str, permanent: bool, local: bool
) -> None:
    folder = tmp_path / "backends"
    variant = change(wheels)
    async with an_installer(folder, wheels) as installer:
        fault = (await refused(installer, variant)).fault
        assert words in fault.reason
        assert (permanent, local) == (fault.permanent, fault.local)
        assert () == installer.installed
        assert [fault] == [one.fault for one in installer.installs.values()]
    assert not folder.exists() or [] == left_behind(folder)


async def test_a_folder_that_is_away_is_said_and_once_it_is_back_the_engine_is_installed(
    tmp_path: Path, wheels: Path
) -> None:
    folder, away = tmp_path / "backends", tmp_path / "away"
    os.rename(wheels, away)
    async with an_installer(folder, wheels) as installer:
        fault = (await refused(installer)).fault
        assert "No such file or directory" in fault.reason
        assert (False, False) == (fault.permanent, fault.local)
        # when
        os.rename(away, wheels)
        # then
        assert "echo" == (await installer.want("echo", VARIANT)).engine
        assert not installer.installs, "what failed before counts no more"


@pytest.fixture
def fifo(wheels: Path) -> Path:
    """The echo's wheel as a pipe that nobody writes to: the installer reads it for ever."""
    wheel = next(wheels.glob("weft_echo-*"))
    wheel.unlink()
    os.mkfifo(wheel)
    return wheel


async def until_reading(installer: Installer) -> psutil.Process:
    """The installer's process, once it is at work."""
    async with asyncio.timeout(30):
        while True:
            found = [one for one in psutil.Process().children(recursive=True) if one.name() == "uv"]
            if found and [one for one in installer.installs.values() if one.progress.phase != "queued"]:
                return found[0]
            await asyncio.sleep(0.02)


async def test_an_install_in_which_nothing_moves_is_given_up(tmp_path: Path, wheels: Path, fifo: Path) -> None:
    async with an_installer(tmp_path / "backends", wheels, silence_s=2.0) as installer:
        fault = (await refused(installer)).fault
    assert "nothing moved for 2 s while it was" in fault.reason
    assert [] == left_behind(tmp_path / "backends")


async def test_a_killed_installer_is_said_and_leaves_nothing(tmp_path: Path, wheels: Path, fifo: Path) -> None:
    async with an_installer(tmp_path / "backends", wheels) as installer:
        wanted = asyncio.create_task(refused(installer))
        (await until_reading(installer)).kill()
        fault = (await wanted).fault
    assert "the installer ended by signal 9" in fault.reason
    assert [] == left_behind(tmp_path / "backends")


async def test_an_installer_that_is_closed_ends_what_it_installs(tmp_path: Path, wheels: Path, fifo: Path) -> None:
    async with an_installer(tmp_path / "backends", wheels) as installer:
        wanted = asyncio.create_task(installer.want("echo", VARIANT))
        uv = await until_reading(installer)
    with pytest.raises(asyncio.CancelledError):
        await wanted
    uv.wait(30)
    assert [] == left_behind(tmp_path / "backends")


_WORKER = """
import asyncio, sys
from pathlib import Path
from weft_contracts.backends import BackendVariant
from weft_worker_agent.outbound.backends.installer import Installer
from weft_worker_agent.outbound.backends.sources import PackageSources

async def main():
    installer = Installer(Path(sys.argv[1]), PackageSources(offline=Path(sys.argv[2])), silence_s=600, at_once=1)
    await installer.want("echo", BackendVariant.model_validate_json(sys.argv[3]))

asyncio.run(main())
"""


def installs(process: psutil.Process) -> bool:
    """Whether it is the uv that installs, and not the one that makes the environment before."""
    try:
        return process.name() == "uv" and "install" in process.cmdline()
    except psutil.Error:
        return False


async def test_the_installer_ends_with_a_worker_that_is_killed_and_the_next_one_removes_what_is_half_made(
    tmp_path: Path, wheels: Path, fifo: Path
) -> None:
    # given a worker in the middle of an install
    folder = tmp_path / "backends"
    worker = psutil.Popen([sys.executable, "-c", _WORKER, str(folder), str(wheels), VARIANT.model_dump_json()])
    async with asyncio.timeout(60):
        while not (found := [one for one in worker.children(recursive=True) if installs(one)]):
            await asyncio.sleep(0.02)
    (making,) = left_behind(folder)
    # when
    worker.send_signal(signal.SIGKILL)
    worker.wait(30)
    # then
    found[0].wait(30)
    async with asyncio.timeout(30):  # what it had started holds the lock, too, and ends a moment later
        while (held := environments.lock(folder, making.removeprefix(".making-"))) is None:
            await asyncio.sleep(0.02)
    os.close(held)
    os.unlink(fifo)
    echo_wheel(wheels)
    async with an_installer(folder, wheels) as installer:
        assert [] == left_behind(folder)
        assert "echo" == (await installer.want("echo", VARIANT)).engine


async def test_what_another_worker_installs_into_the_same_folder_is_waited_for(tmp_path: Path, wheels: Path) -> None:
    folder = tmp_path / "backends"
    async with an_installer(folder, wheels) as one, an_installer(folder, wheels) as other:
        first, second = await asyncio.gather(one.want("echo", VARIANT), other.want("echo", VARIANT))
    assert first == second


def test_where_packages_come_from_is_the_operators_and_stands_in_the_environment_alone(tmp_path: Path) -> None:
    environ = {
        "PATH": "/bin",
        "PYTHONPATH": "/own",
        "SECRET": "x",
        "PIP_INDEX_URL": "http://u:p@index/simple",
        "PIP_FIND_LINKS": "/a /b",
        "UV_OFFLINE": "0",
        "https_proxy": "http://proxy",
    }
    said = PackageSources().environment(tmp_path, find_links=True, environ=environ)
    assert ("http://u:p@index/simple", "/a,/b") == (said["UV_DEFAULT_INDEX"], said["UV_FIND_LINKS"])
    assert "http://proxy" == said["https_proxy"]
    assert not {"SECRET", "PYTHONPATH", "PIP_INDEX_URL", "PIP_FIND_LINKS"} & said.keys()
    assert "UV_FIND_LINKS" not in PackageSources().environment(tmp_path, find_links=False, environ=environ)
    # what the worker's own settings say goes before
    own = PackageSources(index="http://own", find_links="/c").environment(tmp_path, find_links=True, environ=environ)
    assert ("http://own", "/c") == (own["UV_DEFAULT_INDEX"], own["UV_FIND_LINKS"])
    assert "u:p" not in repr(PackageSources(index="http://u:p@index"))
    # and a folder with everything leaves nothing else
    offline = PackageSources(offline=tmp_path).environment(tmp_path, find_links=False, environ=environ)
    assert (str(tmp_path), "1") == (offline["UV_FIND_LINKS"], offline["UV_NO_INDEX"])
    assert "UV_DEFAULT_INDEX" not in offline


@pytest.mark.parametrize(
    ("sources", "environ", "named"),
    [
        (PackageSources(), {}, False),
        (PackageSources(find_links="/wheels"), {"PIP_FIND_LINKS": "/wheels"}, False),
        (PackageSources(offline=Path("/wheels")), {}, True),
        (PackageSources(index="https://index.invalid"), {}, True),
        (PackageSources(), {"UV_INDEX": "https://index.invalid"}, True),
    ],
)
def test_an_operator_who_named_an_index_may_have_builds_that_the_public_one_has_not(
    sources: PackageSources, environ: dict[str, str], named: bool
) -> None:
    assert named == sources.own_index(environ)


def test_what_is_no_whole_environment_is_none(tmp_path: Path) -> None:
    for name, about in {"a": "{}", "b": "[", "c": '{"engine": "vllm", "vendor": "acme", "version": "1"}'}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / environments.ABOUT).write_text(about)
    assert () == environments.installed(tmp_path)
    assert () == environments.installed(tmp_path / "nowhere")
