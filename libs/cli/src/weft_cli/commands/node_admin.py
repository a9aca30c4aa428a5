"""What an admin does with a node: approve, reject, cordon, label, cap, remove."""

from pathlib import Path
from typing import Any

from weft_cli import where
from weft_cli.client import segment
from weft_cli.commands import draining
from weft_cli.commands.tokens import span
from weft_cli.failure import Exit, Failure


def approve(folder: Path | None, url: str | None, node: str) -> None:
    """Let it work here."""
    where.gateway(folder, url).post(f"{_at(node)}/approve", {})
    print(f"{node} is approved")


def reject(folder: Path | None, url: str | None, node: str, reason: str) -> None:
    """Turn it away."""
    where.gateway(folder, url).post(f"{_at(node)}/reject", {"reason": reason})
    print(f"{node} is turned away; weft nodes approve {node} lifts that, weft nodes remove {node} frees its name")


def cordon(folder: Path | None, url: str | None, node: str, reason: str) -> None:
    """Place nothing new there."""
    where.gateway(folder, url).post(f"{_at(node)}/cordon", {"reason": reason})
    print(f"{node} is cordoned: what runs there runs on, nothing new is placed there")


def uncordon(folder: Path | None, url: str | None, node: str, reason: str) -> None:
    """Lift a cordon."""
    where.gateway(folder, url).post(f"{_at(node)}/uncordon", {"reason": reason})
    print(f"{node} takes replicas again")


def label(
    folder: Path | None, url: str | None, node: str, changes: tuple[str, ...], *, replace: bool, give_back: bool
) -> None:
    """Change labels, or without changes only show them. Raises Failure with status 2 for what can't be meant."""
    if give_back and (replace or changes):
        raise Failure("--return gives all labels back to the node: it takes no labels and no --replace", Exit.USAGE)
    wanted = dict(_change(each) for each in changes)
    if replace and None in wanted.values():
        raise Failure("--replace names the labels that are to stay: KEY- has no meaning there", Exit.USAGE)
    gateway, at = where.gateway(folder, url), f"{_at(node)}/labels"
    if give_back:
        found = gateway.delete(at)
    elif replace:
        found = gateway.put(at, wanted)
    elif wanted:
        found = gateway.patch(at, wanted)
    else:
        found = gateway.get(at)
    for key, value in sorted(found["labels"].items()):
        print(f"{key}={value}" + ("  (set by an admin)" if key in found["set"] else ""))
    for key in sorted(key for key, value in found["set"].items() if value is None):
        print(f"{key}-  (taken away by an admin)")


def cap(folder: Path | None, url: str | None, node: str, what: str, value: int | str | None, *, reset: bool) -> None:
    """Set a cap, or give it back to the worker. Raises Failure with status 2 for what can't be meant."""
    if (value is None) != reset:
        raise Failure("name either a value or --reset", Exit.USAGE)
    gateway, at = where.gateway(folder, url), f"{_at(node)}/{what}"
    caps: dict[str, Any] = (gateway.delete(at) if reset else gateway.put(at, {"value": value}))["caps"]
    replicas, budget = caps["replicas_per_model"], caps["vram_budget"]
    print(f"{node} takes {replicas or 'any number of'} replicas of a model, and {budget or 'all'} of each device")


def remove(folder: Path | None, url: str | None, node: str, reason: str, deadline: str, *, force: bool) -> None:
    """Take it out for good; first it is drained."""
    gateway, seconds = where.gateway(folder, url), span(deadline, "--deadline")
    query: dict[str, str | int] = {"force": "true" if force else "false", "deadline_s": seconds, "reason": reason}
    asked = gateway.delete(_at(node), **query)
    if asked.get("state") == "draining":
        draining.follow(gateway, asked, node, seconds)
    print(f"{node} is removed: its key can't come back, its name is free")


def _at(node: str) -> str:
    return f"/api/nodes/{segment(node)}"


def _change(text: str) -> tuple[str, str | None]:
    """KEY=VALUE sets a label, KEY- takes it away."""
    key, equals, value = text.partition("=")
    if equals and key:
        return key, value
    if text.endswith("-") and len(text) > 1:
        return text[:-1], None
    raise Failure(f"{text}: want KEY=VALUE to set a label, or KEY- to take it away", Exit.USAGE)
