"""`weft nodes`: the machines of the mesh."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from weft_cli import api, where
from weft_cli.render import size, table


def run(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print the list of nodes."""
    found = api.snapshot(where.gateway(folder, url)).nodes
    if as_json:
        print(json.dumps([asdict(node) for node in found], indent=1))
    else:
        show(found)


def show(found: Sequence[api.NodeRow]) -> None:
    """Print nodes as a table."""
    table(
        ("node", "id", "state", "cpus", "memory", "devices", "engines"),
        [(n.name, n.id, n.state, n.cpus, size(n.memory), n.devices, n.engines) for n in found],
    )
