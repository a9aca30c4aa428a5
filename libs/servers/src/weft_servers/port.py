"""Loopback ports: free ones are chosen once per state, kept in a file, and checked before use."""

import contextlib
import json
import os
import secrets
import socket
import sys
import weakref
from collections import deque
from collections.abc import Generator
from pathlib import Path
from typing import cast

LOOPBACK = "127.0.0.1"
# Below the ports that Linux (32768 up) and macOS (49152 up) give to outgoing connections: one of those could
# sit on a pinned port just when its server restarts.
_FIRST, _LAST = 20_000, 32_767
_TRIES = 400
_LATELY: deque[int] = deque(maxlen=200)
"""What was given out: who got one may not listen there yet."""
_LINUX_FIRST = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


class PortInUse(OSError):
    """A pinned port is taken by someone else. `port` is its number."""

    def __init__(self, port: int, reason: str, host: str = LOOPBACK) -> None:
        super().__init__(f"port {port} on {host} is not free ({reason}); stop what listens there, or choose another")
        self.port = port


class PortNeedsRight(OSError):
    """This user may not listen on a port, taken or not. `port` is its number."""

    def __init__(self, port: int, host: str = LOOPBACK) -> None:
        low = f": ports below {first_for_all()} need a right that this user hasn't" if port < first_for_all() else ""
        super().__init__(f"this user may not listen on port {port} of {host}{low}")
        self.port = port


class NoFreePort(OSError):
    """No free port was found."""


class HeldPort:
    """A port that no `take` and no `choose` gives to anybody, on this machine, until `release` or this object's end.

    Whoever knows its number may listen there meanwhile, with SO_REUSEADDR as servers do.
    """

    def __init__(self, number: int, bound: socket.socket) -> None:
        """`bound`: becomes this object's."""
        self.number = number
        self._close = weakref.finalize(self, os.close, bound.detach())

    def release(self) -> None:
        """Let others be given it. May be called again."""
        self._close()


def take(count: int = 1) -> list[HeldPort]:
    """Hold distinct free ports, chosen by chance. Those that this process has been given lately are passed over.

    Raises:
        NoFreePort: some hundred tries found too few.
    """
    ports: list[HeldPort] = []
    for _ in range(_TRIES):
        if len(ports) == count:
            _LATELY.extend(port.number for port in ports)
            return ports
        number = _FIRST + secrets.randbelow(_LAST - _FIRST + 1)
        if number not in _LATELY:
            with contextlib.suppress(OSError):
                ports.append(_exclusively(number))
    for port in ports:
        port.release()
    raise NoFreePort(f"found only {len(ports)} of {count} free ports between {_FIRST} and {_LAST} on {LOOPBACK}")


def hold(number: int, host: str = LOOPBACK) -> HeldPort | None:
    """Hold a port that the caller has, and whose server may listen by now. None where the system lets nobody."""
    s = _socket_for(host)
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            s.bind((host, number))
    except OSError:
        s.close()
        return None
    return HeldPort(number, s)


def choose(count: int = 1) -> list[int]:
    """Return distinct ports that were free a moment ago, and that this process has not been given lately.

    Another process may still take one before you do: start, and on failure choose again; or `take`.

    Raises:
        NoFreePort: some hundred tries found too few.
    """
    with taken(count) as ports:
        return ports


@contextlib.contextmanager
def taken(count: int = 1) -> Generator[list[int]]:
    """`take`, until the block's end: for a server that listens by then."""
    ports = take(count)
    try:
        yield [port.number for port in ports]
    finally:
        for port in ports:
            port.release()


def bracketed(host: str) -> str:
    """A host as it stands before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def check_free(port: int, host: str = LOOPBACK) -> None:
    """Return if a server could listen on the port now.

    Raises:
        PortInUse: it could not; the message names the port and the reason.
        PortNeedsRight: it could not, because this user may not.
    """
    try:
        _bound(port, host).close()
    except PermissionError as e:
        raise PortNeedsRight(port, host) from e
    except OSError as e:
        raise PortInUse(port, e.strerror or str(e), host) from e


def first_for_all() -> int:
    """The first port that everybody may listen on: 1024, or what this machine's Linux was told."""
    try:
        return int(_LINUX_FIRST.read_text())
    except (OSError, ValueError):
        return 1024


def pinned(file: Path, *names: str) -> dict[str, int]:
    """Return a port for each name: as in the JSON file; for new names free ones, which are added to it.

    The caller holds the lock of the state that the file belongs to.

    Raises:
        NoFreePort: as `choose`.
        ValueError: the file is no JSON object of numbers.
    """
    try:
        known = cast("dict[str, int]", json.loads(file.read_text()))
    except FileNotFoundError:
        known = {}
    if missing := [name for name in names if name not in known]:
        known |= zip(missing, _unlike(set(known.values()), len(missing)), strict=True)
        fresh = file.with_name(file.name + ".new")
        fresh.write_text(json.dumps(known, indent=1) + "\n")
        os.replace(fresh, file)
    return {name: known[name] for name in names}


def _unlike(taken: set[int], count: int) -> list[int]:
    return [port for port in choose(count + len(taken)) if port not in taken][:count]


def _exclusively(number: int) -> HeldPort:
    """Raises OSError where anybody else has it."""
    s = _socket_for(LOOPBACK)
    try:
        # Bound without SO_REUSEADDR, it is refused wherever another socket is bound, listening or not: of two that try
        # at once, one gets it. With it from then on, a server may listen there as long as this socket doesn't. Only on
        # Linux; elsewhere a bound socket keeps servers off, so nothing is held.
        s.bind((LOOPBACK, number))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except BaseException:
        s.close()
        raise
    held = HeldPort(number, s)
    if sys.platform != "linux":
        held.release()
    return held


def _bound(port: int, host: str = LOOPBACK) -> socket.socket:
    s = _socket_for(host)
    try:
        # As the servers do: what lingers from closed connections is no obstacle, a listener is.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((host, port))
        # Two bound sockets may share a port with SO_REUSEADDR as long as neither listens.
        s.listen(1)
    except BaseException:
        s.close()
        raise
    return s


def _socket_for(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
