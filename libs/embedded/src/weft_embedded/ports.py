"""The ports of an embedded mesh: chosen once, pinned in its state, checked before use."""

import errno
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from weft_client.failure import Failure
from weft_servers.port import LOOPBACK, HeldPort, PortInUse, PortNeedsRight, check_free, choose, hold, take

from weft_embedded.state import read_json, write_private

GATEWAY_DEFAULT = 8080
"""Of a state that has none yet."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Port by name: `gateway`, `nats`, `nats-monitor` and one for each service and worker."""

    by_name: dict[str, int]
    moved: tuple[str, ...] = ()
    """Names whose pinned port is taken by a stranger, and which got another one."""
    held: tuple[HeldPort, ...] = field(default=(), compare=False, repr=False)
    """Nobody who chooses a port gets one of these while this object lives: not another mesh either that starts now."""

    def __getitem__(self, name: str) -> int:
        return self.by_name[name]


def chosen(
    file: Path, names: tuple[str, ...], gateway: int | None, listen: str = LOOPBACK, nats: int | None = None
) -> Ports:
    """Return the ports of a state that this process has locked, and pin those that are new.

    People choose the gateway's port: it moves only when they say so. `listen` is where the gateway and NATS are
    reached; all else is on loopback.

    Raises:
        Failure: the gateway's port is taken, a port needs a right, or `listen` is no address of this machine.
    """
    pinned = {k: v for k, v in (read_json(file) or {}).items() if isinstance(v, int)}
    if nats is not None:
        pinned["nats"] = nats
    ports = {"gateway": gateway or pinned.get("gateway", GATEWAY_DEFAULT)}
    try:
        check_free(ports["gateway"], listen)
    except PortInUse as e:
        if isinstance(e.__cause__, OSError) and e.__cause__.errno == errno.EADDRNOTAVAIL:
            raise Failure(f"{listen} is no address of this machine: choose another by --listen") from e
        raise Failure(
            f"port {e.port} on {listen} is taken by another process; stop that, or choose another port:"
            f" weft up --port {choose()[0]}"
        ) from e
    except PortNeedsRight as e:
        raise _right_missing(e, f"--port {choose()[0]}") from e
    except OverflowError as e:
        raise Failure(f"{ports['gateway']} is not a port: choose one from 1 to 65535") from e
    held = [hold(ports["gateway"], listen)]
    moved: list[str] = []
    for name in names:
        known = pinned.get(name)
        if known is not None and known not in ports.values() and _free(known, listen if name == "nats" else LOOPBACK):
            ports[name] = known
            held.append(hold(known))
            continue
        if known is not None:
            moved.append(name)
        held.append(fresh := _other_than({*ports.values(), *pinned.values()}))
        ports[name] = fresh.number
    if pinned != (merged := pinned | ports):
        write_private(file, json.dumps(merged, indent=1) + "\n")
    return Ports(ports, tuple(moved), tuple(each for each in held if each is not None))


def _free(port: int, host: str) -> bool:
    """Raises Failure where this user may not listen there: nobody else being there would change nothing."""
    try:
        check_free(port, host)
    except PortInUse:
        return False
    except PortNeedsRight as e:
        raise _right_missing(e, f"--nats-port {choose()[0]}") from e
    return True


def _right_missing(error: PortNeedsRight, instead: str) -> Failure:
    give = (
        f", or give it: sudo sysctl net.ipv4.ip_unprivileged_port_start={error.port}" if sys.platform == "linux" else ""
    )
    return Failure(f"{error}; choose another port: weft up {instead}{give}")


def _other_than(taken: set[int]) -> HeldPort:
    while True:  # none is given twice in a row: this ends
        [found] = take()
        if found.number not in taken:
            return found
        found.release()
