"""A real Postgres: made once, supervised, locked, there again after every kind of end."""

import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from weft_servers import port, postgres_binaries, postgres_server
from weft_servers.postgres_binaries import CannotBeUser, NoPostgres
from weft_servers.postgres_conf import PostgresConf
from weft_servers.postgres_server import BadState, PostgresServer
from weft_servers.state_lock import Locked
from weft_servers.supervised import CannotStart

Until = Callable[[Callable[[], bool]], None]
Runs = Callable[[int], bool]
Parent = Callable[[str, Path], tuple[subprocess.Popen[str], list[int]]]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="weft-") as name:
        yield Path(name) / "pg"


async def ask(url: str | None, sql: str) -> Any:
    assert url is not None
    connect: Any = asyncpg.connect  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    connection = await connect(url, timeout=30)
    try:
        return await connection.fetchval(sql, timeout=30)
    finally:
        await connection.close(timeout=30)


async def test_what_is_committed_is_there_after_a_stop_and_after_kill_9(folder: Path):
    with postgres_server.start(folder) as first:
        await ask(first.url, "create table t as select generate_series(1, 5) as n")
        assert first.stop() == 0

    with postgres_server.start(folder) as second:
        await ask(second.url, "insert into t values (6)")
        os.kill(second.pid, signal.SIGKILL)
        with postgres_server.start(folder) as third:
            assert await ask(third.url, "select count(*) from t") == 6
    assert second.stop() == 128 + signal.SIGKILL


async def test_it_is_durable_small_and_speaks_utf8(folder: Path):
    with postgres_server.start(folder) as server:
        for name, value in (
            ("fsync", "on"),
            ("synchronous_commit", "on"),
            ("full_page_writes", "on"),
            ("shared_buffers", "16MB"),
            ("max_connections", "30"),
            ("server_encoding", "UTF8"),
            ("listen_addresses", ""),
        ):
            assert await ask(server.url, f"show {name}") == value
        assert await ask(server.url, "select current_database() || ' ' || current_user") == "weft weft"


def test_the_state_is_its_owners_alone(folder: Path):
    postgres_server.start(folder).stop()

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "password").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "socket").stat().st_mode) == 0o700


async def test_over_loopback_the_password_counts(folder: Path):
    with postgres_server.start(folder, tcp=True) as server:
        assert await ask(server.tcp_url, "select 1") == 1
        assert server.tcp_url is not None
        wrong = server.tcp_url.replace(server.password, "wrong")
        with pytest.raises(Exception, match="password authentication failed"):
            await ask(wrong, "select 1")
        number = server.conf.port

    with postgres_server.start(folder, tcp_port=number) as again:
        assert server.tcp_url == again.tcp_url
        assert await ask(again.tcp_url, "select 1") == 1
        with pytest.raises(port.PortInUse, match=str(number)):
            postgres_server.start(folder.with_name("other"), tcp_port=number)


def test_the_server_ends_when_its_launcher_is_killed_and_the_next_start_waits_for_that(
    folder: Path, parent: Parent, runs: Runs, until: Until
):
    lines = (
        "from weft_servers import postgres_server\ns = postgres_server.start(folder)\nprint(s.pid, s.supervisor_pid)"
    )
    owner, [pid, supervisor_pid] = parent(lines, folder)

    owner.kill()

    with postgres_server.start(folder):
        assert not runs(pid)
        until(lambda: not runs(supervisor_pid))


def test_a_killed_supervisor_takes_the_server_along(folder: Path, runs: Runs, until: Until):
    with postgres_server.start(folder) as server:
        os.kill(server.supervisor_pid, signal.SIGKILL)
        until(lambda: not runs(server.pid))
        postgres_server.start(folder).stop()


def test_a_second_server_on_the_same_folder_is_refused_and_told_who_runs(folder: Path):
    with postgres_server.start(folder) as first:
        with pytest.raises(Locked, match=str(first.pid)):
            postgres_server.start(folder, lock_wait_s=0)
        assert first.poll() is None


def test_a_making_that_was_cut_off_is_begun_anew(folder: Path):
    (folder / "data.making").mkdir(parents=True, mode=0o700)
    (folder / "data.making" / "half").write_text("made")

    postgres_server.start(folder).stop()

    assert not (folder / "data.making").exists()
    assert (folder / "data" / "PG_VERSION").exists()


def test_a_process_number_that_a_stranger_has_now_is_no_obstacle(folder: Path):
    with postgres_server.start(folder) as first:
        text = (folder / "data" / "postmaster.pid").read_text()
        socket_lock = first.conf.socket_folder / ".s.PGSQL.5432.lock"
        socket_text = socket_lock.read_text()
        os.kill(first.pid, signal.SIGKILL)
    with subprocess.Popen(["sleep", "120"]) as stranger:
        (folder / "data" / "postmaster.pid").write_text(text.replace(str(first.pid), str(stranger.pid), 1))
        socket_lock.write_text(socket_text.replace(str(first.pid), str(stranger.pid), 1))

        postgres_server.start(folder).stop()

        assert stranger.poll() is None
        stranger.kill()


async def test_a_path_too_long_for_a_socket_gets_a_short_folder_of_its_own(folder: Path):
    deep = folder / ("x" * 60) / ("ü" * 40)
    with postgres_server.start(deep) as server:
        short = server.conf.socket_folder
        [host] = parse_qs(urlsplit(server.url).query)["host"]
        assert host == str(short)
        assert stat.S_IMODE(short.stat().st_mode) == 0o700
        assert await ask(server.url, "select 1") == 1
    short.chmod(0o755)
    with pytest.raises(BadState, match="mode 700"):
        postgres_server.start(deep)
    short.rmdir()


def test_the_callers_postgres_settings_have_no_say(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PGDATA", "/nonexistent")
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("LC_ALL", "xx_XX.nonsense")

    postgres_server.start(folder).stop()


def test_a_folder_that_is_no_postgres_is_left_alone(folder: Path):
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "precious").write_text("mine")

    with pytest.raises(BadState, match="data"):
        postgres_server.start(folder)

    assert (folder / "data" / "precious").read_text() == "mine"


def test_a_server_that_cannot_start_says_why(folder: Path):
    postgres_server.start(folder).stop()
    (folder / "data" / "global" / "pg_control").unlink()

    with pytest.raises(CannotStart, match="pg_control"):
        postgres_server.start(folder)


def test_a_version_that_is_not_installed_is_named():
    with pytest.raises(NoPostgres, match="Postgres 9"):
        postgres_binaries.find(9)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs a user namespace")
def test_root_without_user_namespaces_is_told_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    refusing = tmp_path / "unshare"
    refusing.write_text("#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotBeUser, match=r"Operation not permitted.*outside Postgres"):
        postgres_binaries.find()

    refusing.unlink()
    with pytest.raises(CannotBeUser, match=r"no `unshare` program.*outside Postgres"):
        postgres_binaries.find()


def test_a_user_without_a_name_runs_it_in_a_user_namespace_or_is_told_the_remedy(monkeypatch: pytest.MonkeyPatch):
    nameless = 54321
    monkeypatch.setattr(os, "geteuid", lambda: nameless)
    said = ""
    try:
        said = " ".join(postgres_binaries.find().prefix)
    except CannotBeUser as refusal:  # this machine has no user namespaces
        said = str(refusal)
    remedy = f"as user {nameless}, who has no entry in the user database"
    assert "--map-user=65534" in said or (remedy in said and "outside Postgres" in said)

    monkeypatch.setattr(postgres_binaries, "_NOBODY", nameless)
    with pytest.raises(CannotBeUser, match=r"user 54321 has no entry there either: name an outside Postgres"):
        postgres_binaries.find()


def test_settings_are_quoted():
    text = PostgresConf(Path("/a 'b\\c")).render()

    assert "unix_socket_directories = '/a ''b\\\\c'" in text


def test_a_server_has_no_loopback_address_unless_asked(folder: Path):
    with postgres_server.start(folder) as server:
        assert isinstance(server, PostgresServer)
        assert server.tcp_url is None
