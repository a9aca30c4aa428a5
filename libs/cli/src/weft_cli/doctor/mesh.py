"""The mesh as its gateway knows it: the log, the tables, the brake, nodes and models. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from weft_client import accelerators

from weft_cli.doctor.finding import Finding, note, ok, problem, warning

SKEW_S = 5.0
"""Clocks further apart make log lines hard to read together; certificates and credentials bear more."""
SKEW_BAD_S = 300.0
Body = Mapping[str, Any]


def examine(status: Body) -> list[Finding]:
    """Judge what `/api/status` says. What it doesn't say is not judged."""
    return [
        *_log(_body(status.get("log"))),
        *_tables(_body(status.get("tables"))),
        *_brake(_body(status.get("mesh")).get("brake")),
        *_nodes(_list(status.get("nodes"))),
        *_models(_list(status.get("models")), _list(status.get("replicas"))),
    ]


def clock(whose: str, skew_s: float | None) -> Finding | None:
    """Whether a clock agrees with the clock of this machine. `skew_s` is known to about a second."""
    if skew_s is None:
        return None
    if abs(skew_s) <= SKEW_S:
        return ok("node", f"clock of {whose}", "agrees with this machine's")
    says = f"{abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} this machine's"
    do = "let NTP set both clocks: timedatectl set-ntp true"
    found = problem if abs(skew_s) > SKEW_BAD_S else warning
    return found("node", f"clock of {whose}", says, do)


def _log(log: Body) -> list[Finding]:
    if not log:
        return []
    if (halted := log.get("halted")) is not None:
        return [problem("mesh", "log", f"the gateway can't go on reading it: {halted}", "weft logs gateway")]
    if log.get("connected") is False:
        return [problem("mesh", "log", "NATS is away: what runs is served, nothing can change", "weft logs nats")]
    if (full := log.get("full")) is not None:
        return [problem("mesh", "log", str(full), "free some of its disk")]
    return [ok("mesh", "log", f"read up to position {log.get('position')}")]


def _tables(tables: Body) -> list[Finding]:
    state = tables.get("state")
    if state in (None, "off"):
        return [note("mesh", "tables", "no database is set: lists answer 503")] if state == "off" else []
    if state == "away":
        says = "Postgres is away: lists answer 503, all else goes on"
        return [problem("mesh", "tables", says, "weft logs postgres")]
    return [ok("mesh", "tables", f"Postgres is reached ({state})")]


def _brake(brake: object) -> list[Finding]:
    if not isinstance(brake, dict):
        return []
    said = cast("Body", brake)
    says = f"set: {said.get('silent')} of {said.get('healthy_before')} nodes fell silent at once; nothing is replaced"
    return [problem("mesh", "brake", says, "bring the nodes back, or if they are gone for good: weft brake lift")]


def _nodes(nodes: Sequence[Body]) -> list[Finding]:
    if not nodes:
        return [
            problem("node", "nodes", "there is none: nothing can run", "let a machine join: weft worker --join URL")
        ]
    return [found for each in nodes for found in (_node(each), *_devices(each))]


def _devices(node: Body) -> list[Finding]:
    """Its accelerators, and what could not be found out of them."""
    name, hardware = f"devices of {node.get('name')}", _body(node.get("hardware"))
    do = f"put that right there, then start its worker again: weft logs {node.get('name')}"
    found = [warning("node", name, each, do) for each in accelerators.notes(hardware)]
    words = accelerators.in_words(hardware)
    return [note("node", name, words), *found] if words else found


def _node(node: Body) -> Finding:
    name, state = str(node.get("name")), str(node.get("state"))
    match state:
        case "healthy":
            return ok("node", name, "healthy")
        case "pending":
            return warning(
                "node", name, "waits for approval", f"weft nodes approve {name}, or weft nodes reject {name}"
            )
        case "unhealthy" | "offline":
            return problem(
                "node", name, f"{state}: it gives no sign of life", f"start its worker, or look there: weft logs {name}"
            )
        case "cut_off":
            return problem(
                "node",
                name,
                f"cut off: {node.get('reason')}",
                f"find out why; then weft nodes resume {name}, or weft nodes remove {name} --force",
            )
        case _:
            return note("node", name, state)


def _models(models: Sequence[Body], replicas: Sequence[Body]) -> list[Finding]:
    if not models:
        return [note("model", "models", "none is deployed", "weft deploy tiny")]
    return [_model(each, [r for r in replicas if r.get("model") == each.get("id")]) for each in models]


def _model(model: Body, replicas: Sequence[Body]) -> Finding:
    name, state, reason = str(model.get("name")), str(model.get("state")), model.get("reason")
    ready, wanted = int(model.get("ready") or 0), int(model.get("wanted") or 0)
    because = f": {reason}" if reason else ""
    failing = model.get("failing")
    match state:
        case "ready" if failing:
            said = f"served by {ready} of {wanted} replicas of revision {model.get('serves')}; {reason}"
            return problem(
                "model", name, said, f"deploy it as it should be, or when the cause is gone: weft retry {name}"
            )
        case "ready" if ready >= wanted:
            return ok("model", name, f"served by {ready} of {wanted} replicas{because}")
        case "ready":
            return warning("model", name, f"served by {ready} of {wanted} replicas{because}", f"weft explain {name}")
        case "unservable":
            return problem("model", name, f"not served{because}", f"put that right, then: weft retry {name}")
        case "unplaceable":
            return problem(
                "model", name, f"no node can take it{because}", f"weft explain {name} says why, node by node"
            )
        case "loading":
            failed = [str(each["reason"]) for each in replicas if each.get("state") == "failed" and each.get("reason")]
            because = because or (f": {failed[0]}" if failed else "")
            return warning("model", name, f"not served yet: it loads{because}", f"weft logs {name} --follow")
        case "empty":
            return note("model", name, "wants no replica", f"weft deploy … --name {name} --replicas 1")
        case _:
            return note("model", name, f"{state}{because}")


def _body(value: object) -> Body:
    return cast("Body", value) if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Body]:
    return cast("list[Body]", value) if isinstance(value, list) else []
