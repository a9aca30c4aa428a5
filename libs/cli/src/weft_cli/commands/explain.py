"""`weft explain`: why a replica went where it did, computed here from the log."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weft_contracts.commit import Recorded
from weft_contracts.ids import ReplicaId
from weft_placement.explain import Explanation, NotInTheLog, explain_decision
from weft_placement.fleet import Fleet

from weft_cli import log_pages, where
from weft_cli.failure import Failure
from weft_cli.render import table


def run(folder: Path | None, url: str | None, replica: str, *, as_json: bool) -> None:
    """Print every node's answer. `replica` is an id, or a model's name for its newest replica."""
    gateway = where.gateway(folder, url)
    log = list(log_pages.commits(gateway))
    try:
        found = explain_decision(log, _replica(log, replica))
    except NotInTheLog as e:
        raise Failure(f"{e}; `weft status` lists those that there are") from e
    if as_json:
        print(json.dumps(as_object(found), indent=1))
    else:
        show(found)


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
                ", ".join(str(index) for index in each.devices),
                "" if each.refusal else f"{each.score:.3f}",
                "  ".join(f"{name} {value:.2f}" for name, value in sorted((each.scores or {}).items())),
            )
            for each in found.answers
        ],
    )


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


def _replica(log: list[Recorded], text: str) -> ReplicaId:
    fleet = Fleet()
    for commit in log:
        fleet.apply(commit)
    if text in fleet.replicas:
        return ReplicaId(text)
    model = fleet.model_named(text)
    mine = [each for each in fleet.replicas.values() if model is not None and each.model == model.id]
    if mine:
        return max(mine, key=lambda each: each.number).id
    return ReplicaId(text)
