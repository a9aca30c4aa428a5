"""What an admin does with a node: approve, reject, cordon, label, cap, remove."""

from pathlib import Path

from weft_client import routes
from weft_client.failure import Exit, Failure
from weft_client.units import span

from weft_cli import locate
from weft_cli.commands import draining
from weft_cli.outcome import show, tell


def approve(folder: Path | None, url: str | None, node: str, *, as_json: bool) -> None:
    """Let it work here."""
    answer = routes.change_node(locate.gateway(folder, url), node, "approve", {})
    tell(f"{node} is approved", answer, as_json=as_json)


def reject(folder: Path | None, url: str | None, node: str, reason: str, *, as_json: bool) -> None:
    """Turn it away."""
    answer = routes.change_node(locate.gateway(folder, url), node, "reject", {"reason": reason})
    lifts, frees = f"`weft nodes approve {node}` lifts that", f"`weft nodes remove {node}` frees its name"
    tell(f"{node} is turned away; {lifts}, {frees}", answer, as_json=as_json)


def cordon(folder: Path | None, url: str | None, node: str, reason: str, *, as_json: bool) -> None:
    """Place nothing new there."""
    answer = routes.change_node(locate.gateway(folder, url), node, "cordon", {"reason": reason})
    tell(f"{node} is cordoned: what runs there runs on, nothing new is placed there", answer, as_json=as_json)


def uncordon(folder: Path | None, url: str | None, node: str, reason: str, *, as_json: bool) -> None:
    """Lift a cordon."""
    answer = routes.change_node(locate.gateway(folder, url), node, "uncordon", {"reason": reason})
    tell(f"{node} takes replicas again", answer, as_json=as_json)


def label(
    folder: Path | None,
    url: str | None,
    node: str,
    changes: tuple[str, ...],
    *,
    replace: bool,
    give_back: bool,
    as_json: bool,
) -> None:
    """Change labels, or without changes only show them. Raises Failure with status 2 for what can't be meant."""
    if give_back and (replace or changes):
        raise Failure("--return gives all labels back to the node: it takes no labels and no --replace", Exit.USAGE)
    wanted = dict(_change(each) for each in changes)
    if replace and None in wanted.values():
        raise Failure("--replace names the labels that are to stay: KEY- has no meaning there", Exit.USAGE)
    gateway = locate.gateway(folder, url)
    if give_back:
        found = routes.return_labels(gateway, node)
    elif replace:
        found = routes.replace_labels(gateway, node, wanted)
    elif wanted:
        found = routes.merge_labels(gateway, node, wanted)
    else:
        found = routes.labels(gateway, node)
    if as_json:
        show(found)
        return
    for key, value in sorted(found["labels"].items()):
        print(f"{key}={value}" + ("  (set by an admin)" if key in found["set"] else ""))
    for key in sorted(key for key, value in found["set"].items() if value is None):
        print(f"{key}-  (taken away by an admin)")


def cap(
    folder: Path | None, url: str | None, node: str, what: str, value: int | str | None, *, reset: bool, as_json: bool
) -> None:
    """Set a cap, or give it back to the worker. Raises Failure with status 2 for what can't be meant."""
    if (value is None) != reset:
        raise Failure("name either a value or --reset", Exit.USAGE)
    gateway = locate.gateway(folder, url)
    found = routes.return_cap(gateway, node, what) if value is None else routes.cap(gateway, node, what, value)
    caps = found["caps"]
    replicas, budget = caps["replicas_per_model"], caps["vram_budget"]
    takes = f"{replicas or 'any number of'} replicas of a model, and {budget or 'all'} of each device"
    tell(f"{node} takes {takes}", found, as_json=as_json)


def remove(
    folder: Path | None, url: str | None, node: str, reason: str, deadline: str, *, force: bool, as_json: bool
) -> None:
    """Take it out for good; first it is drained."""
    gateway, seconds = locate.gateway(folder, url), span(deadline, "--deadline")
    query: dict[str, str | int] = {"force": "true" if force else "false", "deadline_s": seconds, "reason": reason}
    asked = routes.remove_node(gateway, node, **query)
    if asked.get("state") == "draining":
        draining.follow(gateway, asked, node, seconds, quiet=as_json)
    done = {**asked, "state": "removed"}
    tell(f"{node} is removed: its key can't come back, its name is free", done, as_json=as_json)


def _change(text: str) -> tuple[str, str | None]:
    """KEY=VALUE sets a label, KEY- takes it away."""
    key, equals, value = text.partition("=")
    if equals and key:
        return key, value
    if text.endswith("-") and len(text) > 1:
        return text[:-1], None
    raise Failure(f"{text}: want KEY=VALUE to set a label, or KEY- to take it away", Exit.USAGE)
