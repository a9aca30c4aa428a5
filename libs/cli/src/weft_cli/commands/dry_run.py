"""`weft deploy --dry-run`: would it fit, where, and why not elsewhere, computed here from the log."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft_client import api
from weft_client.failure import Failure
from weft_client.gateway import Gateway
from weft_client.units import size
from weft_contracts.facts.values import ModelSpec
from weft_contracts.source_keys import source_key
from weft_fleet import Fleet
from weft_placement import DryRun
from weft_placement import dry_run as computed
from weft_placement.explain import Explanation

from weft_cli import event_pages, outcome
from weft_cli.commands.explain import as_object, show
from weft_cli.commands.found_source import found_in_words

if TYPE_CHECKING:
    from weft_api import Deployed


def show_dry_run(gateway: Gateway, name: str, spec: Mapping[str, Any], *, as_json: bool) -> None:
    """Print where each replica would go, with every node's answer; of a source that workers fetch, what one of them
    found there. Raises Failure if a replica has no place."""
    answer = api.dry_run(gateway, name, spec)
    fleet = Fleet()
    for commit in event_pages.commits(gateway):
        fleet.apply(commit)
    dry_run = computed(fleet, name, ModelSpec.model_validate(spec), pinned=answer.get("source"))
    if as_json:
        outcome.show(_object(name, dry_run, answer))
    else:
        _show(name, dry_run, found_in_words(answer))
    if not dry_run.fits:
        have = f"only {dry_run.staying + dry_run.placed}" if dry_run.staying + dry_run.placed else "none"
        of = "replica" if dry_run.wanted == 1 else f"{dry_run.wanted} replicas"
        raise Failure(f"{have} of the {of} of {name} would fit: {dry_run.explanations[-1].outcome}")


def beginning(name: str, dry_run: DryRun) -> str:
    """What would come of it, in a line: how many replicas there would be, and how many of them have a place."""
    weights = dry_run.spec.weights
    of = f" ({weights.architecture}, {size(weights.weight_bytes)} of weights)" if weights.weight_bytes else ""
    have = "1 stays as it is" if dry_run.staying == 1 else f"{dry_run.staying} stay as they are"
    parts = [have] if dry_run.staying else []
    placed = dry_run.placed
    if missing := dry_run.wanted - dry_run.staying:
        parts.append(f"{placed or 'none'} of {missing} new ones {'has' if placed == 1 else 'have'} a place")
    replicas = "1 replica" if dry_run.wanted == 1 else f"{dry_run.wanted} replicas"
    told = ", ".join(parts) or "none to place"
    return f"dry run: {name}{of} would be revision {dry_run.revision} with {replicas}: {told}"


def _show(name: str, dry_run: DryRun, found: str) -> None:
    print(beginning(name, dry_run))
    if found:
        print(f"  {found}")
    for same in _alike(dry_run.explanations):
        print()
        show(same[0])
        if len(same) > 1:
            print(f"\n{_more(len(same) - 1)} like it, up to {same[-1].replica}")
    print()


def _object(name: str, dry_run: DryRun, answer: "Deployed") -> dict[str, Any]:
    return {
        "name": name,
        "revision": dry_run.revision,
        "wanted": dry_run.wanted,
        "staying": dry_run.staying,
        "placed": dry_run.placed,
        "fits": dry_run.fits,
        "source": source_key(dry_run.spec.source),
        "files": [file.model_dump() for file in dry_run.spec.files],
        "licence": answer.get("licence"),
        "gated": bool(answer.get("gated")),
        "replicas": [as_object(each) for each in dry_run.explanations],
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
