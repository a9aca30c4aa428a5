"""A real Postgres from a wheel: made once, started under the supervisor, ready when `start` returns.

It survives `kill -9` of whatever part: a start on what is left recovers from the write-ahead log.
"""

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from weft_servers import port, postgres_binaries, state_lock, supervised
from weft_servers.postgres_binaries import Binaries
from weft_servers.postgres_conf import SOCKET_PORT, PostgresConf
from weft_servers.state_lock import Locked, StateLock, never
from weft_servers.supervised import CannotStart, GivenUp, RunningServer, SupervisedProcess

USER = "weft"
DATABASE = "weft"
_INIT_TIMEOUT_S = 120.0
_STEP_S = 0.02
# What fits into sockaddr_un.sun_path besides the closing zero byte.
_SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103


class BadState(RuntimeError):
    """The folder holds what is no Postgres state, or one that can't be used here."""


class PostgresServer(RunningServer):
    """A running Postgres. Its `pid` is the postmaster. `stop` is fast: sessions are cut, what is committed stays. After
    `kill` its other processes end by themselves, and the next start recovers."""

    def __init__(self, folder: Path, conf: PostgresConf, password: str, process: SupervisedProcess) -> None:
        super().__init__(process)
        self.folder = folder
        self.conf = conf
        self.password = password

    @property
    def url(self) -> str:
        """The database `weft` over the unix socket, as libpq and asyncpg read it. No password is needed."""
        number = self.conf.port or SOCKET_PORT
        host = quote(str(self.conf.socket_folder), safe="/")
        return f"postgresql://{USER}@/{DATABASE}?host={host}&port={number}"

    @property
    def tcp_url(self) -> str | None:
        """The database over loopback, with its password; None where it doesn't listen there."""
        if self.conf.port is None:
            return None
        return f"postgresql://{USER}:{self.password}@{port.LOOPBACK}:{self.conf.port}/{DATABASE}"


def start(
    folder: Path,
    *,
    tcp: bool = False,
    tcp_port: int | None = None,
    max_connections: int = 30,
    ready_timeout_s: float = 60.0,
    grace_s: float = 15.0,
    lock_wait_s: float = 20.0,
    given_up: Callable[[], bool] = never,
) -> PostgresServer:
    """Start the server of a folder, made with mode 700 and with the empty database `weft` if it is missing.

    Args:
        tcp: also listen on loopback, where the password counts.
        tcp_port: the port for that; None or 0: a free one is chosen.
        ready_timeout_s: bound of the wait for readiness, recovery included.
        grace_s: seconds from the fast shutdown's signal to SIGKILL when it is stopped.
        lock_wait_s: how long to wait for a server whose launcher was killed to let go of the folder.
        given_up: asked during each wait; True ends the start, and what was started.

    Raises:
        state_lock.Locked: another server runs on the folder.
        port.PortInUse: the port that was asked for is taken.
        CannotStart: it could not be made, ended, or was not ready in time.
        BadState, postgres_binaries.NoPostgres, postgres_binaries.CannotBeUser: see there.
    """
    folder = folder.absolute()
    with (
        state_lock.acquire(folder / "lock", "a Postgres server", wait_s=lock_wait_s, given_up=given_up) as lock,
        port.taken(1 if tcp and not tcp_port else 0) as chosen,
    ):
        folder.chmod(0o700)
        data, log = folder / "data", folder / "postgres.log"
        binaries = postgres_binaries.find(_major(data))
        if not data.exists():
            _make(folder, binaries, lock, given_up)
        if tcp_port:
            port.check_free(tcp_port)
        elif chosen:
            [tcp_port] = chosen
        free = shutil.disk_usage(folder).free
        conf = PostgresConf(_socket_folder(folder, tcp_port or SOCKET_PORT), tcp_port or None, max_connections, free)
        _clear_leftovers(data, conf)
        (data / "postgresql.conf").write_text(conf.render())
        (data / "pg_hba.conf").write_text(conf.render_access())
        process = supervised.launch(
            binaries.command("postgres", "-D", str(data)),
            log=log,
            stop_signal="INT",
            grace_s=grace_s,
            keep_fds=[lock.fd],
            env=_environment(),
        )
        server = PostgresServer(folder, conf, (folder / "password").read_text().strip(), process)
        lock.record(pid=process.pid)
        try:
            _wait_ready(server, data, ready_timeout_s, given_up)
        except BaseException:
            if given_up():
                server.kill()
            server.stop()
            raise
        return server


def _make(folder: Path, binaries: Binaries, lock: StateLock, given_up: Callable[[], bool]) -> None:
    """Make the state beside its place and move it there when whole: it is made once or not at all."""
    making, password, log = folder / "data.making", folder / "password", folder / "postgres.log"
    shutil.rmtree(making, ignore_errors=True)
    password.touch(mode=0o600)
    password.write_text(secrets.token_urlsafe(24) + "\n")
    initdb = ["-D", str(making), "-U", USER, f"--pwfile={password}", "--encoding=UTF8", "--locale=C"]
    initdb += ["--auth-local=trust", "--auth-host=scram-sha-256"]
    supervised.run(
        binaries.command("initdb", *initdb),
        log=log,
        timeout_s=_INIT_TIMEOUT_S,
        keep_fds=[lock.fd],
        env=_environment(),
        given_up=given_up,
    )
    script, answer = folder / "making.sql", folder / "making.log"
    script.write_text(f"CREATE DATABASE {DATABASE}\n")
    answer.unlink(missing_ok=True)
    supervised.run(
        binaries.command("postgres", "--single", "-D", str(making), "postgres"),
        log=answer,
        timeout_s=_INIT_TIMEOUT_S,
        keep_fds=[lock.fd],
        env=_environment(),
        stdin=script,
        given_up=given_up,
    )
    if "ERROR:" in answer.read_text():  # the single-user server ends with status 0 all the same
        raise CannotStart(f"the database {DATABASE} could not be made{supervised.tail(answer)}")
    script.unlink()
    answer.unlink()
    os.replace(making, folder / "data")


def _wait_ready(server: PostgresServer, data: Path, timeout_s: float, given_up: Callable[[], bool]) -> None:
    deadline = time.monotonic() + timeout_s
    while not _says_ready(data / "postmaster.pid", server.pid):
        if (status := server.poll()) is not None:
            raise CannotStart(f"Postgres ended with status {status}{supervised.tail(server.folder / 'postgres.log')}")
        if given_up():
            raise GivenUp("the start of Postgres was given up")
        if time.monotonic() >= deadline:
            log = supervised.tail(server.folder / "postgres.log")
            raise CannotStart(f"Postgres was not ready within {timeout_s:g} s{log}")
        time.sleep(_STEP_S)


def _says_ready(pid_file: Path, pid: int) -> bool:
    """Read the server's own word for it: line 1 is its process, line 8 its state, as pg_ctl reads them."""
    with contextlib.suppress(OSError):
        lines = pid_file.read_text().splitlines()
        return len(lines) >= 8 and lines[0].strip() == str(pid) and lines[7].strip() == "ready"
    return False


def _major(data: Path) -> int:
    if not data.exists():
        return postgres_binaries.NEW_CLUSTERS
    try:
        return int((data / "PG_VERSION").read_text())
    except (OSError, ValueError) as e:
        raise BadState(f"{data} is not a Postgres data folder: {e}") from e


def _clear_leftovers(data: Path, conf: PostgresConf) -> None:
    """Remove the files by which Postgres would take a stranger for its own running server.

    After a `kill -9` they stay, and the process number in them may belong to anything by now (after a
    restart of the machine it often does). We hold the lock that every server of this folder inherits, so
    none of ours runs; one that somebody started by hand is respected. A file of a dead process is left to
    Postgres, which then also frees the shared memory that it names.
    """
    pid_file = data / "postmaster.pid"
    with contextlib.suppress(OSError, ValueError, IndexError):
        pid = int(pid_file.read_text().splitlines()[0])
        if _runs_on(pid, data):
            raise Locked(pid_file, state_lock.Holder("a Postgres server that was started by hand", pid, "?"))
        if sys.platform == "linux" and _alive(pid):  # elsewhere a Postgres can't be told from a stranger
            pid_file.unlink()
    socket = conf.socket_folder / f".s.PGSQL.{conf.port or SOCKET_PORT}"
    for each in (socket, socket.with_name(socket.name + ".lock")):
        each.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _runs_on(pid: int, data: Path) -> bool:
    """Tell whether the process is a Postgres in this data folder (it is its working directory)."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cwd").resolve() == data.resolve() and "postgres" in os.readlink(f"/proc/{pid}/exe")
    return False


def _socket_folder(folder: Path, number: int) -> Path:
    """Return the folder for the socket: in the state, or a short one where that path is too long."""
    own = folder / "socket"
    if _fits(own, number):
        own.mkdir(mode=0o700, exist_ok=True)
        return own
    name = f"weft-{os.geteuid()}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"
    for parent in (Path(tempfile.gettempdir()), Path("/tmp")):
        short = parent / name
        if not _fits(short, number):
            continue
        with contextlib.suppress(FileExistsError):
            short.mkdir(mode=0o700)
        found = short.lstat()
        # The folder is for all to write: somebody else may have been there first.
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
            return short
        raise BadState(f"{short} is not this user's own folder of mode 700: remove it, or use a shorter state path")
    raise BadState(f"no path of at most {_SOCKET_PATH_BYTES} bytes for a socket: use a shorter state path")


def _fits(folder: Path, number: int) -> bool:
    # The lock file's name is longer, but only the socket's is bounded.
    return len(os.fsencode(folder / f".s.PGSQL.{number}")) <= _SOCKET_PATH_BYTES


def _environment() -> dict[str, str]:
    # PGDATA, PGPORT and their like in the caller's environment would change what is made here.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}
