"""`weft explain` of an alias: what it stands for since when, and how each of its models stands, by the log."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from weft_client.api import share_of
from weft_contracts.aliases import AliasRule
from weft_contracts.commit import Recorded
from weft_contracts.facts.name import Aliased
from weft_fleet import AliasView, Fleet, ReplicaView

from weft_cli.render import cut, printable, table

_LONGEST = 300
_RULES: dict[AliasRule, str] = {
    "weights": "each request is drawn by share among the models that can take it",
    "order": "each request goes to the first model that is free, or else waits for whichever is free first",
}


@dataclass(frozen=True, slots=True)
class ExplainedTarget:
    """A model that an alias stands for. `ready` of its `wanted` replicas answer."""

    model: str
    share: str
    ready: int
    wanted: int
    reason: str
    """Why it can't be served, where the log says so."""


@dataclass(frozen=True, slots=True)
class ExplainedAlias:
    """An alias and the position of the log at which it was set."""

    alias: str
    rule: AliasRule
    position: int
    targets: tuple[ExplainedTarget, ...]


def explained(log: Sequence[Recorded], fleet: Fleet, view: AliasView) -> ExplainedAlias:
    """The alias by a log and the fleet that was folded from it."""
    set_at = (
        commit.sequence
        for commit in reversed(log)
        if commit.aggregate.key == view.key and any(isinstance(fact, Aliased) for fact in commit.facts)
    )
    total = sum(each.weight for each in view.targets)
    targets: list[ExplainedTarget] = []
    for place, each in enumerate(view.targets, 1):
        share = share_of(view.rule, each.weight, total, place)
        model = fleet.models.get(each.model)
        if model is None or model.deleted:
            targets.append(ExplainedTarget(each.model, share, 0, 0, "it was deleted"))
            continue
        replicas = [fleet.replicas[id] for id in model.replicas if id in fleet.replicas]
        wanted = [replica for replica in replicas if replica.wanted and not replica.evicted]
        ready = sum(replica.state == "ready" for replica in wanted)
        targets.append(ExplainedTarget(model.name, share, ready, len(wanted), model.unservable or _homeless(wanted)))
    return ExplainedAlias(view.name, view.rule, next(set_at, 0), tuple(targets))


def show(found: ExplainedAlias, *, as_json: bool) -> None:
    """Print it."""
    if as_json:
        print(json.dumps(asdict(found), indent=1))
        return
    print(f"{found.alias} is an alias, set at log position {found.position}: {_RULES[found.rule]}\n")
    rows = [
        (each.model, each.share, f"{each.ready}/{each.wanted}", printable(cut(each.reason, _LONGEST)))
        for each in found.targets
    ]
    table(("model", "share", "ready", "reason"), rows)


def _homeless(wanted: Sequence[ReplicaView]) -> str:
    reasons = [each.unplaceable.reason for each in wanted if each.state == "unplaceable" and each.unplaceable]
    return reasons[0] if reasons and len(reasons) == len(wanted) else ""
