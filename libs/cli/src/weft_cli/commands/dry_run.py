"""`weft deploy --dry-run`: would it fit, where, and why not elsewhere; computed by the gateway."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft_client import api
from weft_client.failure import Failure
from weft_client.gateway import Gateway
from weft_client.units import size

from weft_cli import outcome
from weft_cli.commands.explain import show
from weft_cli.commands.found_source import found_in_words

if TYPE_CHECKING:
    from weft_api import Deployed, DryRun, ReplicaExplanation


def show_dry_run(gateway: Gateway, name: str, spec: Mapping[str, Any], *, as_json: bool) -> None:
    """Print where each replica would go, with every node's answer; of a source that workers fetch, what one of them
    found there. Raises Failure if a replica has no place."""
    answer = api.dry_run(gateway, name, spec)
    plan = answer.get("plan")
    if plan is None:
        raise Failure("the gateway is of an earlier version and doesn't say where replicas would go: upgrade it")
    if as_json:
        outcome.show(_object(name, plan, answer))
    else:
        _show(name, plan, answer)
    if not plan["fits"]:
        have = plan["staying"] + plan["placed"]
        of = "replica" if plan["wanted"] == 1 else f"{plan['wanted']} replicas"
        where = plan["replicas"][-1]["outcome"]
        raise Failure(f"{f'only {have}' if have else 'none'} of the {of} of {name} would fit: {where}")


def beginning(name: str, revision: str, plan: "DryRun") -> str:
    """What would come of it, in a line: how many replicas there would be, and how many of them have a place."""
    of = f" ({plan['architecture']}, {size(plan['weight_bytes'])} of weights)" if plan["weight_bytes"] else ""
    have = "1 stays as it is" if plan["staying"] == 1 else f"{plan['staying']} stay as they are"
    parts = [have] if plan["staying"] else []
    placed = plan["placed"]
    if missing := plan["wanted"] - plan["staying"]:
        parts.append(f"{placed or 'none'} of {missing} new ones {'has' if placed == 1 else 'have'} a place")
    replicas = "1 replica" if plan["wanted"] == 1 else f"{plan['wanted']} replicas"
    told = ", ".join(parts) or "none to place"
    return f"dry run: {name}{of} would be revision {revision} with {replicas}: {told}"


def _show(name: str, plan: "DryRun", answer: "Deployed") -> None:
    print(beginning(name, answer["revision"], plan))
    if found := found_in_words(answer):
        print(f"  {found}")
    for same in alike(plan["replicas"]):
        print()
        show(same[0])
        if len(same) > 1:
            print(f"\n{_more(len(same) - 1)} like it, up to {same[-1]['replica']}")
    print()


def _object(name: str, plan: "DryRun", answer: "Deployed") -> dict[str, Any]:
    return {
        "name": name,
        "revision": int(answer["revision"]),
        **plan,
        "licence": answer.get("licence"),
        "gated": bool(answer.get("gated")),
    }


def alike(found: "Sequence[ReplicaExplanation]") -> "list[list[ReplicaExplanation]]":
    """In their order, those together that come out the same: a score differs a little with each that is placed."""
    groups: list[list[ReplicaExplanation]] = []
    for each in found:
        if groups and groups[-1][0]["outcome"] == each["outcome"]:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _more(count: int) -> str:
    return "1 more replica" if count == 1 else f"{count} more replicas"
