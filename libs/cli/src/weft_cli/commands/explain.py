"""`weft explain`: why a replica went where it did, and how its last process ended, computed here from the log."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weft_client.failure import Failure
from weft_client.units import size
from weft_contracts.commit import Recorded
from weft_contracts.facts import run as run_facts
from weft_contracts.ids import ReplicaId
from weft_fleet import Fleet, ReplicaView
from weft_placement.explain import Explanation, NodeAnswer, NotInTheLog, explain_decision

from weft_cli import event_pages, locate
from weft_cli.commands import explain_alias
from weft_cli.render import cut, printable, table

_TROUBLES = 4
"""Of other replicas, the newest first."""
_LONGEST = 300


def run(folder: Path | None, url: str | None, replica: str, *, as_json: bool) -> None:
    """Print every node's answer. `replica` is an id, or a model's name: then it is the one of its replicas that
    answers or comes next to it, and what went wrong with others follows in a line each. An alias tells its models."""
    gateway = locate.gateway(folder, url)
    log = list(event_pages.commits(gateway))
    fleet = Fleet()
    for commit in log:
        fleet.apply(commit)
    if (alias := fleet.aliases.get(replica)) is not None:
        explain_alias.show(explain_alias.explained(log, fleet, alias), as_json=as_json)
        return
    own = replicas_of(fleet, replica)
    try:
        found = explain_decision(log, own[0].id if own else ReplicaId(replica))
    except NotInTheLog as e:
        raise Failure(f"{e}; `weft status` lists those that there are") from e
    end = last_end(log, found.replica)
    if as_json:
        ended = None if end is None else {"reason": end.reason, "last_lines": list(end.lines)}
        print(json.dumps({**as_object(found), "last_end": ended}, indent=1))
        return
    show(found)
    if end is not None:
        print(f"\nits last process ended: {printable(cut(end.reason, _LONGEST))}")
        for line in end.lines:
            print(printable(f"  | {line}"))
    lines = given_up(fleet, found.model_name) + [line for each in own[1:] if (line := trouble(fleet, each))][:_TROUBLES]
    if lines:
        print()
    for line in lines:
        print(printable(line))


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a process of a replica ended that nobody had asked to."""

    reason: str
    lines: tuple[str, ...]
    """Of its log, the last."""


def last_end(log: Iterable[Recorded], replica: str) -> RunEnd | None:
    """The last such end; None where there was none."""
    found: RunEnd | None = None
    for commit in log:
        if commit.aggregate.kind == "run" and commit.aggregate.key.rpartition(".")[2] == replica:
            for fact in commit.facts:
                if isinstance(fact, run_facts.Stopped) and fact.why == "exited":
                    found = RunEnd(fact.detail, fact.last_lines)
                elif isinstance(fact, run_facts.Failed):
                    found = RunEnd(fact.reason, fact.last_lines)
    return found


def show(found: Explanation) -> None:
    """Print an explanation for people."""
    print(f"{found.replica} of model {found.model_name}: {found.outcome}")
    if found.receipt is not None:
        trigger = f"asked for by event {found.receipt.trigger}, seed {found.receipt.seed}"
        print(f"decided at log position {found.receipt.position}, policy {found.policy}, {trigger}")
        for rung in found.receipt.rungs:
            print(f"passed over: {rung}")
    else:
        print(f"computed at log position {found.position}, policy {found.policy}")
    print()
    table(
        ("", "node", "answer", "devices", "score", "scores"),
        [
            (
                "->" if each.chosen else "",
                each.name,
                each.refusal or each.rung,
                claims_in_words(each),
                "" if each.refusal else f"{each.score:.3f}",
                "  ".join(f"{name} {value:.2f}" for name, value in sorted((each.scores or {}).items())),
            )
            for each in found.answers
        ],
    )


def claims_in_words(answer: NodeAnswer) -> str:
    """The devices that a replica would lie on; where part of it lies beside them, how much of each it takes."""
    if not answer.host:
        return ", ".join(str(index) for index in answer.devices)
    devices = [f"{index}: {size(bytes)}" for index, bytes in zip(answer.devices, answer.bytes, strict=True)]
    return ", ".join([*devices, f"machine: {size(answer.host)}"])


def as_object(found: Explanation) -> dict[str, Any]:
    """An explanation as JSON has it."""
    answers = [{**asdict(each), "scores": dict(each.scores or {})} for each in found.answers]
    receipt = found.receipt.model_dump(mode="json") if found.receipt is not None else None
    return {
        "replica": found.replica,
        "model": found.model_name,
        "position": found.position,
        "policy": found.policy,
        "outcome": found.outcome,
        "nodes": answers,
        "receipt": receipt,
    }


def replicas_of(fleet: Fleet, text: str) -> list[ReplicaView]:
    """The replicas of a model by its name: what answers, then what is on its way, then what failed and what is over;
    the newest first among equals."""
    model = fleet.model_named(text) if text not in fleet.replicas else None
    if model is None:
        return []
    own = sorted((each for each in fleet.replicas.values() if each.model == model.id), key=lambda each: -each.number)
    return sorted(own, key=_order)


def given_up(fleet: Fleet, name: str) -> list[str]:
    """A line for each revision of a model that can't be served, and for each upgrade of its engine that failed."""
    model = fleet.model_named(name)
    if model is None:
        return []
    failed = [f"revision {number} of {name} can't be served: {why}" for number, why in model.given_up.items()]
    for number, refused in model.refused.items():
        failed += [f"revision {number} of {name} stays in the engine that it has: {why}" for why in refused.values()]
    return [cut(line, _LONGEST) for line in failed]


def _order(replica: ReplicaView) -> int:
    if not replica.wanted or replica.evicted:
        return 3
    return {"ready": 0, "degraded": 0, "failed": 2, "unplaceable": 2, "lost": 2}.get(replica.state, 1)


def trouble(fleet: Fleet, replica: ReplicaView) -> str:
    """What went wrong with a replica, in one line; empty where nothing did."""
    for run in replica.runs.values():
        if run.phase == "failed":
            node = fleet.nodes.get(run.node)
            where = node.name if node is not None else run.node
            return cut(f"{replica.id} of revision {replica.revision} failed on {where}: {run.reason}", _LONGEST)
    if replica.wanted and replica.state == "unplaceable" and replica.unplaceable is not None:
        return cut(f"{replica.id} of revision {replica.revision} has no place: {replica.unplaceable.reason}", _LONGEST)
    return ""
