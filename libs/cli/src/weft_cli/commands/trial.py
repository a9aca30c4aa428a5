"""`weft deploy --dry-run`: would it fit, where, and why not elsewhere, computed here from the log."""

from collections.abc import Mapping
from typing import Any

from weft_contracts.facts.values import ModelSpec
from weft_placement import Trial
from weft_placement import try_out as place
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
    for explained in trial.explanations:
        print()
        show(explained)
    if not trial.fits:
        raise Failure(f"{name} would not fit: {trial.explanations[-1].outcome}")


def _beginning(name: str, trial: Trial) -> str:
    weights = trial.spec.weights
    of = f" ({weights.architecture}, {size(weights.weight_bytes)} of weights)" if weights.weight_bytes else ""
    kept = f"; {trial.staying} replicas stay as they are" if trial.staying else ""
    new = len(trial.explanations)
    added = f", {new} replica{'s' if new != 1 else ''} to place" if new else ", nothing to place"
    return f"dry run: {name}{of} would be revision {trial.revision}{added}{kept}"
