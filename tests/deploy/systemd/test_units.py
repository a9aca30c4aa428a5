"""The units that `weft install --systemd` makes: systemd takes them, they end when what they run has ended, and nothing
of anybody else is touched. `tests/integration/test_systemd.py` has a real systemd run them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_cli.systemd import parts, places, unit_file, worker_file
from weft_cli.systemd.parts import Part
from weft_client.failure import Exit, Failure
from weft_embedded import detach, mesh_plan, shutdown
from weft_worker_agent.outbound.supervisor import agent_process, options, supervisor

EXPOSURE = {"mesh": 2.0, "worker": 2.0, "nats": 1.8}
"""What `systemd-analyze security` makes of the system's units, as the README says it."""
TOKEN = "dG9rZW4tdGhhdC1sZXRzLWFzaw"
README = Path(__file__).parents[3] / "libs/cli/README.md"


def weft(*words: str) -> str:
    """What the command prints. Raises Failure as it does."""
    done = CliRunner().invoke(app, list(words))
    if isinstance(done.exception, Failure):
        raise done.exception
    assert 0 == done.exit_code, done.output
    return done.stdout


def analyze(*words: str, status: int = 0) -> str:
    """What `systemd-analyze` says, warnings included. It must be there."""
    assert shutil.which("systemd-analyze"), "systemd-analyze not found (Debian, Ubuntu: apt install systemd)"
    done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False, timeout=30)
    assert status == done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with folders of their own, and no manager that runs."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.delenv("WEFT_STATE", raising=False)
    monkeypatch.setenv("WEFT_JOIN_TOKEN", TOKEN)
    return tmp_path


@pytest.fixture
def words(tmp_path: Path) -> dict[Part, list[str]]:
    """What each unit is asked for with."""
    weft("nats-config", "n1=127.0.0.1", "--out", str(tmp_path / "nats"), "--state", str(tmp_path / "mesh"))
    return {
        "mesh": ["mesh", "--port", "8443", "--listen", "0.0.0.0"],
        "worker": ["worker", "--join", "https://10.0.0.1:8080", "--name", "rack1-a"],
        "nats": ["nats", "--folder", str(tmp_path / "nats" / "n1")],
    }


def service(text: str) -> dict[str, str]:
    """The lines of its section; of doubled ones the last."""
    found = re.search(r"^\[Service\]\n((?:.+\n)*)", text, re.MULTILINE)
    assert found is not None
    return dict(line.split("=", 1) for line in found[1].splitlines())


@pytest.mark.parametrize("part", parts.UNITS)
@pytest.mark.parametrize("user", [False, True], ids=["system", "user"])
def test_systemd_finds_nothing_wrong_in_a_unit(
    part: Part, user: bool, words: dict[Part, list[str]], own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whose = ["--user"] if user else []
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(own_folders))  # systemd's own check asks for one
    file = own_folders / parts.UNITS[part]
    file.write_text(weft("install", *words[part], "--systemd", "--print", *whose))
    said = analyze("verify", "--man=no", "--recursive-errors=no", *whose, str(file))
    assert "" == said
    # and one that says something else than systemd takes would be found
    file.write_text(file.read_text().replace("KillMode=mixed", "KillMode=whatever"))
    assert "kill mode" in analyze("verify", "--man=no", "--recursive-errors=no", *whose, str(file), status=1)


@pytest.mark.parametrize("part", parts.UNITS)
def test_a_unit_of_the_system_is_as_closed_as_the_page_says(
    part: Part, words: dict[Part, list[str]], tmp_path: Path
) -> None:
    file = tmp_path / parts.UNITS[part]
    file.write_text(weft("install", *words[part], "--systemd", "--print"))
    found = re.search(r"exposure level for \S+: ([\d.]+)", analyze("security", "--offline=true", str(file)))
    assert found is not None
    assert EXPOSURE[part] >= float(found[1])
    assert f"{EXPOSURE[part]:.1f}" in README.read_text()


def test_a_mesh_on_a_low_port_is_given_the_right_to_it_and_no_other() -> None:
    low, high = (service(weft("install", "--systemd", "--print", "--port", port)) for port in ("443", "8443"))
    for each in ("AmbientCapabilities", "CapabilityBoundingSet"):
        assert ("CAP_NET_BIND_SERVICE", "") == (low[each], high[each])


def test_systemd_waits_longer_than_what_it_runs_takes_to_end(words: dict[Part, list[str]]) -> None:
    mesh = service(weft("install", *words["mesh"], "--systemd", "--print"))
    graces = mesh_plan.STOP_BOUND_S
    assert graces <= shutdown.BOUND_S < shutdown.DOWN_S < float(mesh["TimeoutStopSec"])
    assert detach.BOUND_S == float(mesh["TimeoutStartSec"])
    # and a worker's is that of its own settings, and of its code
    own = supervisor.AGENT_MARGIN_S + supervisor.HOSTS_TERM_S
    assert (own, options.DEFAULT_DRAIN_S, options.DEFAULT_STOP_S, agent_process.BAD_CONFIGURATION) == (
        parts.WORKER_MARGIN_S,
        worker_file.DRAIN_S,
        worker_file.STOP_S,
        parts.BAD_CONFIGURATION,
    )
    weft("install", *words["worker"], "--systemd", "--user")
    settings = places.of_user().settings
    bound = float(service(weft("install", "worker", "--systemd", "--user", "--print"))["TimeoutStopSec"])
    assert options.DEFAULT_DRAIN_S + options.DEFAULT_STOP_S + own < bound
    (settings / "worker.toml").write_text((settings / "worker.toml").read_text() + "drain-timeout = 900\n")
    (settings / "worker.env").write_text('# requests that run\nWEFT_STOP_TIMEOUT="30"\n')
    longer = float(service(weft("install", "worker", "--systemd", "--user", "--print"))["TimeoutStopSec"])
    assert 900 + 30 + own < longer < bound + 900 + 30
    assert options.MAX_DRAIN_S + options.MAX_STOP_S + own + parts.STOP_MARGIN_S < parts.LONGEST_STOP_S


@pytest.mark.parametrize("part", parts.UNITS)
def test_a_unit_is_made_once_and_what_was_made_is_taken_away_and_nothing_else(
    part: Part, words: dict[Part, list[str]], own_folders: Path
) -> None:
    units = own_folders / "config/systemd/user"
    stranger = units / "stranger.service"
    units.mkdir(parents=True)
    stranger.write_text("[Unit]\n")
    # shown, it is written nowhere
    weft("install", *words[part], "--systemd", "--user", "--print")
    assert [stranger] == list(units.iterdir())
    assert not (own_folders / "config/weft").exists()
    # made, and made again
    assert f"made {units / parts.UNITS[part]}" in weft("install", *words[part], "--systemd", "--user")
    again = [each for each in words[part] if part != "worker"] or ["worker"]
    text = (units / parts.UNITS[part]).read_text()
    assert "is as it should be" in weft("install", *again, "--systemd", "--user")
    assert text == (units / parts.UNITS[part]).read_text()
    # and taken away: what it kept is left
    said = weft("uninstall", part, "--systemd", "--user")
    assert [stranger] == list(units.iterdir())
    if part == "worker":
        assert f"left {own_folders / 'config/weft/worker.toml'}" in said
        weft("install", "worker", "--systemd", "--user")
        weft("uninstall", part, "--systemd", "--user", "--purge")
        assert not (own_folders / "config/weft/worker.toml").exists()


def test_a_unit_that_somebody_else_made_or_edited_is_not_touched(own_folders: Path) -> None:
    unit = own_folders / "config/systemd/user/weft.service"
    unit.parent.mkdir(parents=True)
    for command in ("install", "uninstall"):
        unit.write_text("[Service]\nExecStart=/bin/true\n")
        with pytest.raises(Failure, match="didn't make it"):
            weft(command, "--systemd", "--user")
        unit.unlink()
        weft("install", "--systemd", "--user")
        unit.write_text(edited := unit.read_text().replace("RestartSec=5", "RestartSec=1"))
        with pytest.raises(Failure, match="systemctl edit"):
            weft(command, "--systemd", "--user")
        assert edited == unit.read_text()
    unit.unlink()
    with pytest.raises(Failure, match="nothing was installed"):
        weft("uninstall", "--systemd", "--user")


def test_a_token_stands_in_a_file_of_its_owner_and_in_no_unit(words: dict[Part, list[str]], own_folders: Path) -> None:
    said = weft("install", *words["worker"], "--systemd", "--user")
    file = own_folders / "config/weft/worker.toml"
    assert TOKEN in file.read_text()
    assert 0o600 == file.stat().st_mode & 0o777
    assert TOKEN not in said + (own_folders / "config/systemd/user/weft-worker.service").read_text()
    system = service(weft("install", "worker", "--systemd", "--print", "--config", str(file)))
    assert f"worker.toml:{file}" == system["LoadCredential"]
    assert "${CREDENTIALS_DIRECTORY}/worker.toml" in system["ExecStart"]
    # and a file that others can read is refused
    file.chmod(0o640)
    with pytest.raises(Failure, match="chmod 600"):
        weft("install", "worker", "--systemd", "--user")


def test_the_same_line_again_brings_a_worker_its_new_token(
    words: dict[Part, list[str]], own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weft("install", *words["worker"], "--systemd", "--user")
    file = own_folders / "config/weft/worker.toml"
    file.write_text(f"# ours\n{file.read_text()}drain-timeout = 900\n")
    before = file.read_text()
    # given the same line, then one with another token
    weft("install", *words["worker"], "--systemd", "--user")
    assert before == file.read_text()
    monkeypatch.setenv("WEFT_JOIN_TOKEN", "YW5vdGhlcg")
    weft("install", *words["worker"], "--systemd", "--user")
    # then nothing else of the file is touched
    assert before.replace(TOKEN, "YW5vdGhlcg") == file.read_text()
    assert 0o600 == file.stat().st_mode & 0o777
    assert [file] == list(file.parent.iterdir())
    # and one that has none gets it
    file.write_text('join = "https://10.0.0.1:8080/"\nlabels = {zone = "a"}')
    weft("install", *words["worker"], "--systemd", "--user")
    assert 'token = "YW5vdGhlcg"\njoin = "https://10.0.0.1:8080/"\nlabels = {zone = "a"}' == file.read_text()
    # and neither another mesh's nor one that isn't plain is guessed at
    for text, says in (
        ('join = "https://10.0.0.2:8080"\n', "there already"),
        ('join = "https://10.0.0.1:8080"\n"token" = "x"\n', "write the new one into it"),
    ):
        file.write_text(text)
        with pytest.raises(Failure, match=says):
            weft("install", *words["worker"], "--systemd", "--user")
        assert text == file.read_text()


def test_no_token_is_written_for_a_unit_that_can_not_be_made(words: dict[Part, list[str]], own_folders: Path) -> None:
    with pytest.raises(Failure, match="no systemd runs here"):
        weft("install", *words["worker"], "--systemd", "--user", "--now")
    unit = own_folders / "config/systemd/user/weft-worker.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\n")
    with pytest.raises(Failure, match="didn't make it"):
        weft("install", *words["worker"], "--systemd", "--user")
    assert not (own_folders / "config/weft").exists()


@pytest.mark.parametrize("path", ["/tmp/weft/state", "/var/tmp", "/tmp"])
def test_what_a_unit_does_not_see_is_told(path: str) -> None:
    assert Path(path) == places.hidden((Path("/opt/weft"), Path(path), Path("/tmp/other")))
    assert places.hidden((Path("/opt/tmp"), Path("/tmporary"), Path("/srv"))) is None


def test_a_state_at_home_is_seen_by_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft_cli.systemd.installation.paths", lambda: (Path("/opt/weft"),))
    for state, home in (("/home/a/mesh", "read-only"), ("/root/mesh", "read-only"), ("/srv/mesh", "yes")):
        assert home == service(weft("install", "--systemd", "--print", "--state", state))["ProtectHome"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["mesh"], "--systemd"),
        (["whatever", "--systemd"], "mesh, worker, nats"),
        (["worker", "--systemd", "--user", "--port", "1"], "options of `mesh`"),
        (["mesh", "--systemd", "--user", "--folder", "x"], "options of `nats`"),
        (["worker", "--systemd", "--user"], "worker.toml"),
        (["nats", "--systemd", "--user"], "nats-config"),
        (["nats", "--systemd", "--user", "--folder", "."], "nats.conf"),
        (["mesh", "--systemd", "--user", "--state", "/tmp/a\nb"], "can't stand in a unit"),
    ],
)
def test_what_can_not_be_meant_is_refused_in_a_sentence(
    line: list[str], says: str, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_folders)
    with pytest.raises(Failure, match=re.escape(says)) as failed:
        weft("install", *line)
    assert Exit.USAGE == failed.value.exit
    assert not (own_folders / "config").exists()


def test_words_of_a_command_stay_what_they_are() -> None:
    said = ["/opt/my tools/python", "-m", "a%b", "c$d", 'e"f', "g\\h", "${CREDENTIALS_DIRECTORY}/x y"]
    written = unit_file.command(*said)
    assert said == unit_file.words(written)
    assert "a%%b" in written
    assert "c$$d" in written


def test_a_folder_that_a_user_may_not_enter_is_named(tmp_path: Path) -> None:
    open_folder, closed = tmp_path / "open", tmp_path / "open" / "closed"
    closed.mkdir(parents=True)
    for each in (open_folder, closed, *tmp_path.parents):
        if each.stat().st_uid == os.geteuid() and each.is_relative_to(tmp_path):
            each.chmod(0o755)
    below = closed / "python"
    below.write_text("")
    base = places.closed_to("nobody-at-all", (open_folder,))
    closed.chmod(0o700)
    assert places.closed_to("nobody-at-all", (below,)) == (base or closed)


@pytest.fixture
def asked(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's manager that runs all units, and notes what it is asked for."""
    (own_folders / "run/systemd/private").mkdir(parents=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(own_folders / "run"))
    notes, systemctl = own_folders / "asked", own_folders / "bin/systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text(f'#!/bin/sh\necho "$@" >>{notes}\n')
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")
    return notes


def of_release(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What calls is of a release in a folder of its own."""
    monkeypatch.setattr(sys, "executable", str(folder / "versions" / name / "venv/bin/python"))


def test_a_worker_goes_on_from_the_next_release_by_a_reload_and_the_first_mesh_by_a_restart(
    words: dict[Part, list[str]], asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last: dict[Part, str] = {"mesh": "restart weft.service", "worker": "reload weft-worker.service"}
    for part, wanted in last.items():
        of_release("0123456789ab", tmp_path, monkeypatch)
        weft("install", *words[part], "--systemd", "--user", "--now")
        assert f"--user restart {parts.UNITS[part]}" == asked.read_text().splitlines()[-1]
        # when the next release makes the unit anew
        of_release("ba9876543210", tmp_path, monkeypatch)
        weft("install", *words[part], "--systemd", "--user", "--now")
        # then it names that one, for the next boot
        assert "ba9876543210" in (tmp_path / "config/systemd/user" / parts.UNITS[part]).read_text()
        assert f"--user {wanted}" == asked.read_text().splitlines()[-1]
    # and a worker that is told something else besides starts anew
    of_release("0123456789ab", tmp_path, monkeypatch)
    weft("install", *words["worker"], "--systemd", "--user", "--now", "--state", str(tmp_path / "other"))
    assert "--user restart weft-worker.service" == asked.read_text().splitlines()[-1]
