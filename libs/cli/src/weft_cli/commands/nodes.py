"""`weft nodes`: the machines of the mesh."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from weft_client import api, routes
from weft_client.units import size

from weft_cli import locate
from weft_cli.render import cut, printable, table

if TYPE_CHECKING:
    from weft_api import Drain, Heartbeat

_REASON = 300


def run(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print the list of nodes."""
    found = api.snapshot(locate.gateway(folder, url)).nodes
    if as_json:
        print(json.dumps([asdict(node) for node in found], indent=1))
    else:
        show(found)


def find(
    folder: Path | None,
    url: str | None,
    status: str | None,
    name: str | None,
    labels: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    """Print the nodes that fit, from the tables: also those that were removed."""
    asked = [("state", status), ("name", name), *(("label", label) for label in labels)]
    found = api.nodes(locate.gateway(folder, url), urlencode([pair for pair in asked if pair[1] is not None]))
    if as_json:
        print(json.dumps([asdict(node) for node in found], indent=1))
    else:
        show(found)


def get(folder: Path | None, url: str | None, node: str, *, as_json: bool) -> None:
    """Print one node."""
    found = routes.node(locate.gateway(folder, url), node)
    if as_json:
        print(json.dumps(found, indent=1))
        return
    show((api.node_row(found),))
    caps = found["caps"]
    labels = ", ".join(f"{key}={value}" for key, value in sorted(found["labels"].items()))
    rows = [
        ("address", found["addresses"]["host"]),
        ("labels", labels),
        ("replicas", ", ".join(found["replicas"])),
        ("replicas of a model", caps["replicas_per_model"] or "any number"),
        ("of each device", caps["vram_budget"] or "all"),
        ("cordoned", "yes" if found["cordoned"] else "no"),
        ("drain", _drain(found["drain"])),
        ("over HTTP", _heartbeat(found.get("heartbeat"))),
        ("reason", found["reason"]),
    ]
    print()
    table(("of it", "is"), [row for row in rows if row[1]])


def _heartbeat(found: "Heartbeat | None") -> str:
    return "" if found is None else found["problem"]


def _drain(drain: "Drain | None") -> str:
    if drain is None:
        return ""
    whose = "its worker's, until it is back" if drain["why"] == "worker" else "an admin's, until it is lifted"
    return whose + ("; then it is removed" if drain["leaves"] is not None else "")


def show(found: Sequence[api.NodeRow]) -> None:
    """Print nodes as a table."""
    table(
        ("node", "id", "state", "cpus", "memory", "devices", "engines"),
        [(n.name, n.id, n.state, n.cpus, size(n.memory), n.devices, n.engines) for n in found],
    )
    for node in found:
        if node.reason:
            print(printable(cut(f"{node.name} is {node.state}: {node.reason}", _REASON)))
