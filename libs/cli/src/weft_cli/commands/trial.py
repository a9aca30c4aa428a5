"""`weft deploy --dry-run`: would it fit, where, and why not elsewhere, computed here from the log."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft_contracts.facts.values import ModelSpec
from weft_placement import Trial
from weft_placement import try_out as place
from weft_placement.explain import Explanation
from weft_placement.fleet import Fleet

from weft_cli import api, log_pages
from weft_cli.client import Gateway
from weft_cli.commands.explain import show
from weft_cli.failure import Failure
from weft_cli.render import size


def try_out(gateway: Gateway, name: str, spec: Mapping[str, Any]) -> None:
    """Print where each replica would go, with every node's answer. Raises Failure if one has no place."""
    api.try_out(gateway, name, spec)
    fleet = Fleet()
    for commit in log_pages.commits(gateway):
        fleet.apply(commit)
    trial = place(fleet, name, ModelSpec.model_validate(spec))
    print(_beginning(name, trial))
    for same in _alike(trial.explanations):
        print()
        show(same[0])
        if len(same) > 1:
            print(f"\n{_more(len(same) - 1)} like it, up to {same[-1].replica}")
    if not trial.fits:
        raise Failure(f"{name} would not fit: {trial.explanations[-1].outcome}")


def _alike(found: Sequence[Explanation]) -> list[list[Explanation]]:
    """In their order, those together that come out the same: a score differs a little with each that is placed."""
    groups: list[list[Explanation]] = []
    for each in found:
        if groups and groups[-1][0].outcome == each.outcome:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _more(count: int) -> str:
    return "1 more replica" if count == 1 else f"{count} more replicas"


def _beginning(name: str, trial: Trial) -> str:
    weights = trial.spec.weights
    of = f" ({weights.architecture}, {size(weights.weight_bytes)} of weights)" if weights.weight_bytes else ""
    kept = f"; {trial.staying} replicas stay as they are" if trial.staying else ""
    new = len(trial.explanations)
    added = f", {new} replica{'s' if new != 1 else ''} to place" if new else ", nothing to place"
    return f"dry run: {name}{of} would be revision {trial.revision}{added}{kept}"
