"""`weft deploy --dry-run`: would it fit, where, and why not elsewhere, computed here from the log."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft_client import api
from weft_client.failure import Failure
from weft_client.gateway import Gateway
from weft_client.units import size
from weft_contracts.facts.values import ModelSpec
from weft_fleet import Fleet
from weft_placement import DryRun
from weft_placement import dry_run as place
from weft_placement.explain import Explanation

from weft_cli import event_pages, outcome
from weft_cli.commands.explain import as_object, show


def try_out(gateway: Gateway, name: str, spec: Mapping[str, Any], *, as_json: bool) -> None:
    """Print where each replica would go, with every node's answer. Raises Failure if one has no place."""
    api.try_out(gateway, name, spec)
    fleet = Fleet()
    for commit in event_pages.commits(gateway):
        fleet.apply(commit)
    trial = place(fleet, name, ModelSpec.model_validate(spec))
    if as_json:
        outcome.show(_object(name, trial))
    else:
        _show(name, trial)
    if not trial.fits:
        have = f"only {trial.staying + trial.placed}" if trial.staying + trial.placed else "none"
        of = "replica" if trial.wanted == 1 else f"{trial.wanted} replicas"
        raise Failure(f"{have} of the {of} of {name} would fit: {trial.explanations[-1].outcome}")


def beginning(name: str, trial: DryRun) -> str:
    """What would come of it, in a line: how many replicas there would be, and how many of them have a place."""
    weights = trial.spec.weights
    of = f" ({weights.architecture}, {size(weights.weight_bytes)} of weights)" if weights.weight_bytes else ""
    have = "1 stays as it is" if trial.staying == 1 else f"{trial.staying} stay as they are"
    parts = [have] if trial.staying else []
    if missing := trial.wanted - trial.staying:
        parts.append(f"{trial.placed or 'none'} of {missing} new ones {'has' if trial.placed == 1 else 'have'} a place")
    replicas = "1 replica" if trial.wanted == 1 else f"{trial.wanted} replicas"
    return (
        f"dry run: {name}{of} would be revision {trial.revision} with {replicas}: {', '.join(parts) or 'none to place'}"
    )


def _show(name: str, trial: DryRun) -> None:
    print(beginning(name, trial))
    for same in _alike(trial.explanations):
        print()
        show(same[0])
        if len(same) > 1:
            print(f"\n{_more(len(same) - 1)} like it, up to {same[-1].replica}")
    print()


def _object(name: str, trial: DryRun) -> dict[str, Any]:
    return {
        "name": name,
        "revision": trial.revision,
        "wanted": trial.wanted,
        "staying": trial.staying,
        "placed": trial.placed,
        "fits": trial.fits,
        "replicas": [as_object(each) for each in trial.explanations],
    }


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
