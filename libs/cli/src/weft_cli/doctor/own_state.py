"""The state's folder: its lock, its ports, and the processes of the mesh that runs on it."""

import os
from concurrent.futures import Executor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from weft_embedded.mesh_plan import SERVICES
from weft_embedded.ports import GATEWAY_DEFAULT
from weft_embedded.run_file import PartRow, RunFile
from weft_embedded.state import State, read_json
from weft_servers import state_lock
from weft_servers.port import PortInUse, PortNeedsRight, check_free

from weft_cli.doctor import probes
from weft_cli.doctor.finding import Finding, note, ok, problem, warning

RESTARTS_MANY = 5


def examine(state: State, record: RunFile | None, pool: Executor) -> list[Finding]:
    """`record` is that of a living launcher."""
    found = [folder(state.folder), lock(state, record)]
    if record is None:
        return [*found, *ports(state)]
    return [*found, *processes(state, record, pool)]


def folder(path: Path) -> Finding:
    if not path.exists():
        return note("state", "folder", f"{path} does not exist yet; `weft up` makes it")
    if path.stat().st_uid != os.geteuid():
        return problem("state", "folder", f"{path} belongs to another user", "name your own: --state DIR")
    if not os.access(path, os.W_OK | os.X_OK):
        return problem("state", "folder", f"{path} can't be written to", f"chmod 700 {path}")
    return ok("state", "folder", str(path))


def lock(state: State, record: RunFile | None) -> Finding:
    """Whether it is held, and by whom it should be."""
    try:
        held = state_lock.held(state.lock)
    except OSError as e:
        return problem("state", "lock", f"{state.lock} can't be read: {e.strerror}", "look who may read it")
    if record is None and held:
        return problem(
            "state",
            "lock",
            "held, though no launcher runs: processes that one left behind still end"
            f" (it was {state_lock.holder_of(state.lock) or 'unknown'})",
            f"wait a minute; lsof {state.lock} names what holds it then",
        )
    if record is not None and not held:
        return problem("state", "lock", f"free, though the launcher (process {record.pid}) runs", "weft down; weft up")
    return ok("state", "lock", f"held by the launcher (process {record.pid})" if record is not None else "free")


def ports(state: State) -> list[Finding]:
    """Of a mesh that doesn't run: whether it could listen. Others than the gateway's move by themselves."""
    pinned = {k: v for k, v in (read_json(state.ports) or {}).items() if isinstance(v, int)}
    number = pinned.get("gateway", GATEWAY_DEFAULT)
    try:
        check_free(number)
    except PortInUse:
        return [
            problem(
                "state",
                "port",
                f"port {number} of the gateway is taken by another process",
                "stop that, or choose another: weft up --port N",
            )
        ]
    except PortNeedsRight as e:
        return [problem("state", "port", str(e), "choose another: weft up --port N")]
    return [ok("state", "port", f"port {number} of the gateway is free")]


def processes(state: State, record: RunFile, pool: Executor) -> list[Finding]:
    """Each process of a running mesh: as its launcher sees it, and as it says itself."""

    url = urlsplit(record.url)

    def one(part: PartRow) -> Finding:
        return process(state, part, url.hostname or "127.0.0.1", tls=url.scheme == "https")

    return list(pool.map(one, record.parts))


def process(state: State, part: PartRow, gateway: str = "127.0.0.1", *, tls: bool = False) -> Finding:
    """One process. `gateway`: the gateway's address; `tls`: whether it and the workers speak TLS."""
    look = f"weft logs {part.name}"
    if part.state == "held":
        return warning("process", part.name, "held: it is not started again", f"weft release {part.name}")
    if part.state != "ready":
        often = f", {part.restarts} restarts" if part.restarts else ""
        return problem("process", part.name, f"{part.state}{often}", look)
    why = _asked(state, part, gateway, tls=tls)
    if why is not None:
        return problem("process", part.name, why, look)
    if part.restarts >= RESTARTS_MANY:
        return warning("process", part.name, f"ready, after {part.restarts} restarts", look)
    return ok("process", part.name, "ready")


def _asked(state: State, part: PartRow, gateway: str, *, tls: bool) -> str | None:
    """What a process says is wrong with it; None if nothing is."""
    if part.name == "nats":
        return probes.nats_greets(part.port) if part.port else None
    if part.name == "postgres":
        return probes.postgres_answers(state.postgres)
    if part.port is None or not (part.name in SERVICES or part.name.startswith("worker-")):
        return None
    host = gateway if part.name == "gateway" else "127.0.0.1"
    tls = tls and (part.name == "gateway" or part.name not in SERVICES)
    ready = probes.over_http(host, part.port, "/readyz", tls=tls)
    if ready.status == 0:
        return f"it does not answer on port {part.port}: {ready.why}"
    if ready.status != 200:
        waiting = ", ".join(str(each) for each in ready.body.get("waiting_for") or ()) or f"status {ready.status}"
        return f"not ready: {waiting}"
    return unhealthy(probes.over_http(host, part.port, "/healthz", tls=tls))


def unhealthy(said: probes.Answer) -> str | None:
    """A service's problems as it tells them: a halted fold, aggregates set aside as suspect, a full log."""
    problems: dict[str, Any] = said.body.get("problems") or {}
    if said.status == 200 and not problems:
        return None
    told = "; ".join(f"{part}: {why}" for part, why in sorted(problems.items()))
    return told or f"/healthz answers {said.status or said.why}"
