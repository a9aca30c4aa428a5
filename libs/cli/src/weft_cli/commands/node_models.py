"""`weft nodes models` and `weft nodes unload`: what one machine runs, and taking a model off it."""

import json
import time
from pathlib import Path

from weft_cli import where
from weft_cli.client import segment
from weft_cli.commands.tokens import span
from weft_cli.failure import Failure
from weft_cli.render import table

_LOOK_EVERY_S = 0.5
_AFTER_S = 60.0
"""How long the end of what ran there may take behind the deadline."""


def run(folder: Path | None, url: str | None, node: str, *, as_json: bool) -> None:
    """Print the models and their replicas there."""
    found = where.gateway(folder, url).get(f"/api/nodes/{segment(node)}/models")["items"]
    if as_json:
        print(json.dumps(found, indent=1))
        return
    table(
        ("model", "replica", "state", "engine", "reason"),
        [
            (model["name"], each["id"], each["state"], each["engine"] or "", each["reason"] or "")
            for model in found
            for each in model["replicas"]
        ],
    )


def unload(folder: Path | None, url: str | None, node: str, model: str, deadline: str) -> None:
    """Take a model off a node and wait until it is gone. Raises Failure if it isn't behind the deadline."""
    gateway, seconds = where.gateway(folder, url), span(deadline, "--deadline")
    at = f"/api/nodes/{segment(node)}/models"
    asked = gateway.post(f"{at}/{segment(model)}/unload", {"deadline_s": seconds})
    leaving = set(asked["replicas"].split())
    if not leaving:
        print(f"{model} is not on {node}")
        return
    print(f"{model} is taken off {node}: {len(leaving)} of its replicas", flush=True)
    end = time.monotonic() + seconds + _AFTER_S
    there: set[str] = leaving
    while time.monotonic() < end:
        there = {each["id"] for found in gateway.get(at)["items"] for each in found["replicas"]}
        if leaving.isdisjoint(there):
            print(f"{model} is off {node}")
            return
        time.sleep(_LOOK_EVERY_S)
    raise Failure(f"{', '.join(sorted(leaving & there))} still runs on {node}; weft status says why")
