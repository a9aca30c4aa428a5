"""`weft nodes models` and `weft nodes unload`: what one machine runs, and taking a model off it."""

import time
from pathlib import Path

from weft_client import routes
from weft_client.failure import Failure
from weft_client.units import span

from weft_cli import locate
from weft_cli.outcome import show, tell
from weft_cli.render import table

_LOOK_EVERY_S = 0.5
_AFTER_S = 60.0
"""How long the end of what ran there may take behind the deadline."""


def run(folder: Path | None, url: str | None, node: str, *, as_json: bool) -> None:
    """Print the models and their replicas there."""
    found = routes.models_on(locate.gateway(folder, url), node)["items"]
    if as_json:
        show(found)
        return
    table(
        ("model", "replica", "state", "engine", "reason"),
        [
            (model["name"], each["id"], each["state"], each["engine"] or "", each["reason"] or "")
            for model in found
            for each in model["replicas"]
        ],
    )


def unload(folder: Path | None, url: str | None, node: str, model: str, deadline: str, *, as_json: bool) -> None:
    """Take a model off a node and wait until it is gone. Raises Failure if it isn't behind the deadline."""
    gateway, seconds = locate.gateway(folder, url), span(deadline, "--deadline")
    asked = routes.unload(gateway, node, model, seconds)
    leaving = set(asked["replicas"].split())
    done = {"node": node, "model": model, "replicas": sorted(leaving)}
    if not leaving:
        tell(f"{model} is not on {node}", done, as_json=as_json)
        return
    if not as_json:
        print(f"{model} is taken off {node}: {len(leaving)} of its replicas", flush=True)
    end = time.monotonic() + seconds + _AFTER_S
    there: set[str] = leaving
    while time.monotonic() < end:
        there = {each["id"] for found in routes.models_on(gateway, node)["items"] for each in found["replicas"]}
        if leaving.isdisjoint(there):
            tell(f"{model} is off {node}", done, as_json=as_json)
            return
        time.sleep(_LOOK_EVERY_S)
    raise Failure(f"{', '.join(sorted(leaving & there))} still runs on {node}; `weft status` says why")
