"""What clients may ask of the supervisor, and what it answers: a JSON object a line, both ways."""

import signal
from collections.abc import Callable
from typing import Any, cast

from weft_worker_agent.outbound.supervisor.host_output import forget_old_logs
from weft_worker_agent.outbound.supervisor.host_process import HostProcess
from weft_worker_agent.outbound.supervisor.orphans import MARK

_SIGNALS = {"TERM": signal.SIGTERM, "INT": signal.SIGINT, "KILL": signal.SIGKILL}
_ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
MAX_HOSTS = 256
"""Living and ended together; the longest ended are forgotten first."""


class CommandRefused(Exception):
    """A request that can't be done; the message is for the one who asked."""


class CommandHandler:
    """Knows the hosts, and does what clients ask for: spawn, list, signal, reap."""

    def __init__(self, logs: str, started: Callable[[HostProcess], None]) -> None:
        self._logs = logs
        self._started = started
        self._closed = False
        self.hosts: dict[str, HostProcess] = {}

    def close(self) -> None:
        """Start nothing more."""
        self._closed = True

    def answer(self, request: object) -> dict[str, Any]:
        """Do what one line asks. Never raises."""
        try:
            if not isinstance(request, dict):
                raise CommandRefused('want an object such as {"op": "list"}')
            body = cast("dict[str, Any]", request)
            match body.get("op"):
                case "spawn":
                    return {"ok": True, "pid": self._spawn(body).pid}
                case "list":
                    return {"ok": True, "hosts": [host.view() for host in self.hosts.values()]}
                case "signal":
                    self._signal(body)
                    return {"ok": True}
                case "reap":
                    return {"ok": True, "host": self._reap(body)}
                case other:
                    raise CommandRefused(f"{other!r} is no request: want spawn, list, signal, reap or follow")
        except CommandRefused as refusal:
            return {"ok": False, "error": str(refusal)}
        except OSError as error:
            return {"ok": False, "error": f"the supervisor could not do it: {error}"}

    def of_pid(self, pid: int) -> HostProcess | None:
        return next((host for host in self.hosts.values() if host.pid == pid and host.exit_code is None), None)

    def living(self) -> list[HostProcess]:
        return [host for host in self.hosts.values() if host.exit_code is None]

    def _spawn(self, body: dict[str, Any]) -> HostProcess:
        argv, env, launch = (body.get(key) for key in ("argv", "env", "launch"))
        host_id = str(body.get("host_id"))
        if self._closed:
            raise CommandRefused("the supervisor is ending")
        if not _is_id(host_id):
            raise CommandRefused(f"host_id {host_id!r}: want 1 to 80 characters of a-z, 0-9 and -")
        if host_id in self.hosts:
            raise CommandRefused(f"host {host_id} exists already")
        if not _are_texts(argv) or not argv:
            raise CommandRefused("argv: want a list of at least one text")
        if not isinstance(env, dict) or not _are_texts([*cast("dict[Any, Any]", env).items()], pairs=True):
            raise CommandRefused("env: want an object of texts")
        if not isinstance(launch, dict):
            raise CommandRefused("launch: want an object")
        self._make_room()
        forget_old_logs(self._logs)
        identity = cast("dict[str, object]", launch)
        name = identity.get("replica")
        log = f"{self._logs}/host-{name if _is_id(name) else host_id}.log"
        host = HostProcess(host_id, argv, {**cast("dict[str, str]", env), MARK: host_id}, identity, log=log)
        self.hosts[host_id] = host
        self._started(host)
        return host

    def _make_room(self) -> None:
        ended = [id for id, host in self.hosts.items() if host.exit_code is not None]
        while len(self.hosts) >= MAX_HOSTS and ended:
            del self.hosts[ended.pop(0)]
        if len(self.hosts) >= MAX_HOSTS:
            raise CommandRefused(f"{MAX_HOSTS} hosts run here already")

    def _signal(self, body: dict[str, Any]) -> None:
        number = _SIGNALS.get(str(body.get("signal")))
        if number is None:
            raise CommandRefused(f"signal {body.get('signal')!r}: want TERM, INT or KILL")
        self._host(body).end(number)

    def _reap(self, body: dict[str, Any]) -> dict[str, Any]:
        host = self._host(body)
        if host.exit_code is None:
            raise CommandRefused(f"host {host.id} still runs: signal it first")
        return self.hosts.pop(host.id).view()

    def _host(self, body: dict[str, Any]) -> HostProcess:
        host = self.hosts.get(str(body.get("host_id")))
        if host is None:
            raise CommandRefused(f"there is no host {body.get('host_id')!r}")
        return host


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 80 and _ID_CHARACTERS.issuperset(value)


def _are_texts(value: object, *, pairs: bool = False) -> bool:
    if not isinstance(value, list):
        return False
    items = cast("list[Any]", value)
    return all(isinstance(part, str) for item in items for part in (item if pairs else (item,)))
