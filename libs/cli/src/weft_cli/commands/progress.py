"""How a deploy gets on, told line by line: placing, loading, answering, or why not."""

import time

from weft_client import api
from weft_client.failure import Failure
from weft_client.gateway import Gateway

from weft_cli.render import printable

_LOOK_S = 0.2
_FIGURES_S = 10.0
"""How far an install or a load is, is printed so often."""
_HOMELESS_S = 3.0
"""Without a place for so long: nodes that have just been asked about the files may still answer."""


def watch(gateway: Gateway, name: str, wait_s: float, *, quiet: bool, least: int = 1) -> None:
    """Until the newest revision answers, from `least` replicas at least; `quiet`: nothing is printed.

    Raises Failure if it can't, though an older one may still.
    """
    began = time.monotonic()
    homeless_since: float | None = None
    said, figures_at = "", began
    while True:
        seen, now = api.snapshot(gateway), time.monotonic()
        model = seen.model(name)
        if model is None:
            raise Failure(f"{name} was removed meanwhile")
        if seen.log_full is not None:
            raise Failure(f"{name} is accepted, and goes on once the log has room: {seen.log_full}")
        own = [each for each in seen.replicas if each.model == name and each.digest == model.digest]
        ready = sum(each.state == "ready" for each in own)
        if ready >= max(least, model.wanted, 1) and model.serves in (None, model.revision):
            if not quiet:
                print(f"{name} answers from {ready} replica{'s' if ready > 1 else ''}")
            return
        if model.state == "unservable":
            raise Failure(f"{name} is unservable: {model.reason}")
        if model.failing:
            what = f"revision {model.revision} of {name} can't be served: {model.failing}"
            raise Failure(f"{what}; revision {model.serves} goes on")
        homeless = next((each for each in own if each.state == "unplaceable"), None)
        homeless_since = None if homeless is None else homeless_since or now
        if homeless is not None and homeless_since is not None and now - homeless_since >= _HOMELESS_S:
            raise Failure(f"{name} has no place for {homeless.id}: {homeless.reason}")
        now_said = phase(own, ready, max(model.wanted, len(own)))
        said = now_said if quiet else _say(now_said, said)
        if not quiet and now - figures_at >= _FIGURES_S:
            figures_at = now
            for each in own:
                if each.progress:
                    print(f"    {each.id}: {printable(each.progress)}", flush=True)
        if now - began >= wait_s:
            raise Failure(f"{name} is not ready after {wait_s:g} s; the mesh goes on trying: see `weft status`")
        time.sleep(_LOOK_S)


def phase(own: list[api.ReplicaRow], ready: int, wanted: int) -> str:
    """What the replicas of a revision do now, in a few words."""
    if ready:
        return f"{ready} of {wanted} replicas answer"
    placed = [each for each in own if each.node]
    if not placed:
        return "placing"
    nodes = ", ".join(dict.fromkeys(each.node for each in placed))
    trouble = next((each.reason for each in placed if each.reason), "")
    return f"loading on {nodes}" + (f": {trouble}" if trouble else "")


def _say(text: str, before: str) -> str:
    if text != before:
        print(f"  {text}", flush=True)
    return text
