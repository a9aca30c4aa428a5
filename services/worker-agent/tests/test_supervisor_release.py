"""From which release a supervisor starts its agent anew."""

import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import psutil
import pytest
from weft_testing.story import until
from weft_worker_agent.outbound.supervisor.release import newest

AGENT = ("-m", "weft_worker_agent", "--agent")


class Installed:
    """Releases below one folder, of which the first runs."""

    def __init__(self, folder: Path) -> None:
        self.versions = folder / "versions"
        self.old, self.new = (self._release(name) for name in ("old", "new"))

    def _release(self, name: str) -> str:
        python = self.versions / name / "venv/bin/python"
        python.parent.mkdir(parents=True)
        python.touch(0o755)
        return str(python)

    def link(self, to: str) -> None:
        link = self.versions / "current"
        link.unlink(missing_ok=True)
        link.symlink_to(to)

    def agent(self, python: str = "") -> tuple[str, ...]:
        return newest((python or self.old, *AGENT), python=self.old, prefix=str(Path(self.old).parents[1]))


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def test_it_is_the_one_that_was_installed_last_by_its_own_name(installed: Installed) -> None:
    assert (installed.old, *AGENT) == installed.agent()
    installed.link("new")
    assert (installed.new, *AGENT) == installed.agent()
    installed.link("old")
    assert (installed.old, *AGENT) == installed.agent()


@pytest.mark.parametrize("to", ["gone", "..", "/"])
def test_a_link_to_what_is_no_release_leaves_it_the_one_that_runs(installed: Installed, to: str) -> None:
    installed.link(to)
    assert (installed.old, *AGENT) == installed.agent()


def test_another_command_and_an_environment_of_another_kind_are_left(installed: Installed) -> None:
    installed.link("new")
    assert ("/bin/agent", *AGENT) == installed.agent("/bin/agent")
    elsewhere = installed.versions.rename(installed.versions.with_name("environments"))
    python = str(elsewhere / "old/venv/bin/python")
    assert (python, *AGENT) == newest((python, *AGENT), python=python, prefix=str(elsewhere / "old/venv"))


RUN = """
import sys
from weft_worker_agent.outbound.supervisor import options, supervisor
agent = (sys.executable, "-c", "import sys, time; open(sys.argv[1], 'a').write(sys.prefix + chr(10)); time.sleep(600)")
sys.exit(supervisor.run(options.Options(state=sys.argv[1], agent=(*agent, sys.argv[2]), grace_s=1.0)))
"""


def environment(prefix: Path) -> Path:
    """One of its own with what is installed here; its Python."""
    packages = prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "here.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    python = prefix / "bin/python"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    (prefix / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    return python


def test_a_real_supervisor_starts_its_agent_from_the_next_release_once_it_is_told_and_not_when_that_dies(
    tmp_path: Path, process_env: dict[str, str]
) -> None:
    versions, told = tmp_path / "versions", tmp_path / "told"
    old, new = versions / "old/venv", versions / "new/venv"
    python = environment(old)
    environment(new)

    def agents() -> list[str]:
        return told.read_text().splitlines() if told.exists() else []

    with subprocess.Popen([str(python), "-c", RUN, str(tmp_path / "state"), str(told)], env=process_env) as running:
        try:
            # given an agent of the release that was there, and another release
            until("it has an agent", lambda: agents() == [str(old)], 60)
            (versions / "current").symlink_to("new")
            # when the agent dies, it is of the one that runs
            (child,) = psutil.Process(running.pid).children()
            child.kill()
            until("it has another", lambda: agents() == [str(old)] * 2, 60)
            # and when the supervisor is told so, of the next one
            running.send_signal(signal.SIGUSR1)
            until("it is of the next", lambda: agents() == [str(old), str(old), str(new)], 60)
        finally:
            running.terminate()
            running.wait(30)
