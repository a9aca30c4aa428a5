"""`weft doctor`: what is wrong with this machine and the mesh, and what to do about it."""

import json
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from weft_client import routes
from weft_client.command_names import pasteable
from weft_client.failure import Exit
from weft_client.gateway import Refused, Unreachable
from weft_embedded import run_file

from weft_cli import locate
from weft_cli.doctor import machine, mesh, own_state, probes
from weft_cli.doctor.finding import Finding, Verdict, note, ok, problem
from weft_cli.render import on_terminal

if TYPE_CHECKING:  # types alone: a command need not wait for what defines them
    from weft_api import Node

_GATEWAY_S = 5.0
_NODES_ASKED = 64
_AT_ONCE = 16
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MARKS: dict[Verdict, str] = {"ok": "ok", "note": "note", "warning": "warning", "problem": "PROBLEM"}
_STYLES: dict[Verdict, str] = {"ok": "32", "note": "36", "warning": "33", "problem": "31;1"}


def run(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Look at everything and print it. Exits with 1 if something doesn't work."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = examine(folder, url, pool)
    bad = any(each.verdict == "problem" for each in found)
    if as_json:
        print(json.dumps({"ok": not bad, "findings": [_object(each) for each in found]}, indent=1))
    else:
        _show(found)
    if bad:
        raise SystemExit(int(Exit.FAILED))


def examine(folder: Path | None, url: str | None, pool: Executor) -> list[Finding]:
    """This machine, the state's mesh, and the mesh behind the gateway, which may be another."""
    state = locate.state(folder)
    record = run_file.read(state)
    if record is not None and not record.alive():
        record = None
    found = machine.examine(state.folder)
    if url is None or (record is not None and record.url == url.rstrip("/")):
        found += own_state.examine(state, record, pool)
    if url is None and record is None:
        return [*found, note("mesh", "mesh", f"none runs on {state.folder}", "weft up")]
    return [*found, *_mesh(folder, url, pool)]


def _mesh(folder: Path | None, url: str | None, pool: Executor) -> list[Finding]:
    gateway = locate.gateway(folder, url, timeout_s=_GATEWAY_S)
    try:
        status = routes.status(gateway)
    except (Refused, Unreachable) as e:
        return [problem("mesh", "gateway", str(e), "weft logs gateway, or name another: --url URL")]
    try:
        waits = mesh.upgrade(routes.upgrade(gateway))
    except (Refused, Unreachable, KeyError):
        waits = None  # an older gateway knows of none
    parts = urlsplit(gateway.url)
    own = parts.hostname in _LOOPBACK
    found = [ok("mesh", "gateway", f"answers at {gateway.url}"), *mesh.examine(status), *filter(None, [waits])]
    tls = parts.scheme == "https"
    if parts.hostname:
        said = probes.over_http(parts.hostname, parts.port or (443 if tls else 80), "/healthz", tls=tls)
        found += filter(None, [mesh.clock("the gateway", said.skew_s)])
        if not own and (why := own_state.unhealthy(said)) is not None:
            found.append(problem("mesh", "gateway", why, "look into its log"))
    nodes = [each for each in status.get("nodes", []) if each["state"] == "healthy"]

    def one(node: "Node") -> list[Finding]:
        return _node(node, own_machine=own, tls=tls)

    for each in pool.map(one, nodes[:_NODES_ASKED]):
        found += each
    if len(nodes) > _NODES_ASKED:
        found.append(note("node", "nodes", f"{len(nodes) - _NODES_ASKED} more were not asked for their clocks"))
    return found


def _node(node: "Node", *, own_machine: bool, tls: bool = False) -> list[Finding]:
    """Ask a healthy node's own server, where it can be reached from here: its problems and its clock."""
    name, host, port = node["name"], node["addresses"]["host"], node["addresses"]["http_port"]
    if not host or (host in _LOOPBACK and not own_machine):
        return []
    said = probes.over_http(host, port, "/healthz", tls=tls)
    if said.status == 0:
        where_it_is = f"{host}:{port}"
        if own_machine and host in _LOOPBACK:
            return [
                problem("node", name, f"its server at {where_it_is} gives no answer: {said.why}", f"weft logs {name}")
            ]
        return [note("node", name, f"{where_it_is} can't be reached from this machine: {said.why}")]
    why = own_state.unhealthy(said)
    found = [problem("node", name, why, f"look into its worker's log on {host}")] if why is not None else []
    clock = mesh.clock(name, said.skew_s)
    return [*found, clock] if clock is not None else found


def _object(each: Finding) -> dict[str, Any]:
    return {**asdict(each), "says": pasteable(each.says), "do": pasteable(each.do)}


def _show(found: Sequence[Finding]) -> None:
    styled = on_terminal()
    width = max(len(f"{each.area} {each.name}") for each in found)
    for each in found:
        mark = f"{_MARKS[each.verdict]:<7}"
        mark = f"\033[{_STYLES[each.verdict]}m{mark}\033[0m" if styled else mark
        print(f"{mark}  {f'{each.area} {each.name}':<{width}}  {pasteable(each.says)}")
        if each.do and each.verdict != "ok":
            print(f"{'':<7}  {'':<{width}}  do: {pasteable(each.do)}")
    counts = {verdict: sum(each.verdict == verdict for each in found) for verdict in ("problem", "warning")}
    if not any(counts.values()):
        print("nothing is wrong")
    else:
        print(", ".join(f"{count} {what}{'s' if count > 1 else ''}" for what, count in counts.items() if count))
