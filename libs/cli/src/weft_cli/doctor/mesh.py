"""The mesh as its gateway knows it: the log, the tables, the brake, nodes and models. Pure."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weft_client import accelerators

from weft_cli.doctor.finding import Finding, note, ok, problem, warning

if TYPE_CHECKING:  # types alone: a command need not wait for what defines them
    from weft_api import Brake, Log, Model, Node, Replica, Status, Tables, Upgrade

_NAMED = 8
SKEW_S = 5.0
"""Clocks further apart make log lines hard to read together; certificates and credentials bear more."""
SKEW_BAD_S = 300.0


def examine(status: "Status") -> list[Finding]:
    """Judge what `/api/status` says. A part that another version says otherwise is not judged."""
    parts: tuple[Callable[[], list[Finding]], ...] = (
        lambda: _log(status["log"]),
        lambda: _tables(status["tables"]),
        lambda: _brake(status["mesh"]["brake"]),
        lambda: _nodes(status["nodes"]),
        lambda: _models(status["models"], status["replicas"]),
    )
    return [found for part in parts for found in _judged(part)]


def _judged(part: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return part()
    except KeyError:
        return []


def upgrade(said: "Upgrade") -> Finding | None:
    """Whether something waits for the end of an upgrade, and for whom that waits."""
    if said["finished"]:
        return None
    behind = [node["name"] for node in said["behind"]]
    says = "not finished: LoRA adapters, or lists and objects in engine_args, are refused"
    if not behind:
        return note("mesh", "upgrade", says, "when every service is upgraded: weft upgrade finish")
    named = ", ".join(behind[:_NAMED]) + (f" and {len(behind) - _NAMED} more" if len(behind) > _NAMED else "")
    return note("mesh", "upgrade", f"{says}; {named} can't read them", "upgrade their workers: weft upgrade says more")


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


def _log(log: "Log") -> list[Finding]:
    if (halted := log["halted"]) is not None:
        return [problem("mesh", "log", f"the gateway can't go on reading it: {halted}", "weft logs gateway")]
    if not log["connected"]:
        return [problem("mesh", "log", "NATS is away: what runs is served, nothing can change", "weft logs nats")]
    if (full := log.get("full")) is not None:  # an older gateway's answer lacks it
        return [problem("mesh", "log", full, "free some of its disk")]
    return [ok("mesh", "log", f"read up to position {log['position']}")]


def _tables(tables: "Tables") -> list[Finding]:
    state = tables["state"]
    if state == "off":
        return [note("mesh", "tables", "no database is set: lists answer 503")]
    if state == "away":
        says = "Postgres is away: lists answer 503, all else goes on"
        return [problem("mesh", "tables", says, "weft logs postgres")]
    return [ok("mesh", "tables", f"Postgres is reached ({state})")]


def _brake(brake: "Brake | None") -> list[Finding]:
    if brake is None:
        return []
    says = f"set: {brake['silent']} of {brake['healthy_before']} nodes fell silent at once; nothing is replaced"
    return [problem("mesh", "brake", says, "bring the nodes back, or if they are gone for good: weft brake lift")]


def _nodes(nodes: "Sequence[Node]") -> list[Finding]:
    if not nodes:
        return [
            problem("node", "nodes", "there is none: nothing can run", "let a machine join: weft worker --join URL")
        ]
    return [found for each in nodes for found in (_node(each), *_devices(each))]


def _devices(node: "Node") -> list[Finding]:
    """Its accelerators, and what could not be found out of them."""
    if (hardware := node["hardware"]) is None:
        return []
    name = f"devices of {node['name']}"
    do = f"put that right there, then start its worker again: weft logs {node['name']}"
    found = [warning("node", name, each, do) for each in accelerators.notes(hardware)]
    words = accelerators.in_words(hardware)
    return [note("node", name, words), *found] if words else found


def _node(node: "Node") -> Finding:
    name, state = node["name"], node["state"]
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
                f"cut off: {node['reason']}",
                f"find out why; then weft nodes resume {name}, or weft nodes remove {name} --force",
            )
        case _:
            return note("node", name, state)


def _models(models: "Sequence[Model]", replicas: "Sequence[Replica]") -> list[Finding]:
    if not models:
        return [note("model", "models", "none is deployed", "weft deploy tiny")]
    return [_model(each, [r for r in replicas if r["model"] == each["id"]]) for each in models]


def _model(model: "Model", replicas: "Sequence[Replica]") -> Finding:
    name, state, reason = model["name"], model["state"], model["reason"]
    ready, wanted = model["ready"], model["wanted"]
    because = f": {reason}" if reason else ""
    failing = model.get("failing")  # an older gateway's answer lacks it
    match state:
        case "ready" if failing:
            said = f"served by {ready} of {wanted} replicas of revision {model['serves']}; {reason}"
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
            return problem("model", name, f"it has no place{because}", f"weft explain {name} says why, node by node")
        case "loading":
            failed = [each["reason"] for each in replicas if each["state"] == "failed" and each["reason"]]
            because = because or (f": {failed[0]}" if failed else "")
            return warning("model", name, f"not served yet: it loads{because}", f"weft logs {name} --follow")
        case "empty":
            return note("model", name, "wants no replica", f"weft deploy … --name {name} --replicas 1")
        case _:
            return note("model", name, f"{state}{because}")
