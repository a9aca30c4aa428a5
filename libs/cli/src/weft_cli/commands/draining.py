"""`weft drain`: a node is emptied, and what happens meanwhile is told line by line. `weft nodes resume` lifts it."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_client import api, routes
from weft_client.failure import Failure
from weft_client.gateway import Gateway
from weft_client.units import span

from weft_cli import event_pages, locate
from weft_cli.outcome import show, tell
from weft_cli.render import cut, printable

if TYPE_CHECKING:
    from weft_api import NodeChanged

_LOOK_S = 0.3
_MARGIN_S = 30.0
"""After its deadline a drain's last runs stop within seconds; what takes longer hangs somewhere."""
Fact = Mapping[str, Any]


def drain(folder: Path | None, url: str | None, node: str, deadline: str, *, as_json: bool) -> None:
    """Begin a drain and follow it. Raises Failure if it is lifted, or not done in time."""
    gateway = locate.gateway(folder, url)
    seconds = span(deadline, "--deadline")
    asked = routes.change_node(gateway, node, "drain", {"deadline_s": seconds})
    follow(gateway, asked, node, seconds, quiet=as_json)
    if as_json:
        show({**asked, "state": "drained"})


def resume(folder: Path | None, url: str | None, node: str, *, as_json: bool) -> None:
    """Lift a drain."""
    answer = routes.change_node(locate.gateway(folder, url), node, "resume", {})
    tell(f"{node} takes replicas again", answer, as_json=as_json)


def follow(gateway: Gateway, asked: "NodeChanged", node: str, seconds: float, *, quiet: bool) -> None:
    """Tell what follows from a drain until it is done; `quiet`: only wait.

    `asked` is what the gateway answered to the request for it.
    """
    id, request = asked["node"], routes.change_request(gateway, asked["request"])
    nodes = api.snapshot(gateway).nodes
    names, is_done = {each.id: each.name for each in nodes}, any(n.id == id and n.state == "drained" for n in nodes)
    after, until = request["number"], time.monotonic() + seconds + _MARGIN_S
    while time.monotonic() < until:
        for page in event_pages.pages(gateway, after):
            for event in page:
                after = event["sequence"]
                if event["correlation_id"] != request["correlation_id"] and event["key"].partition(".")[0] != id:
                    continue
                for fact in event["facts"]:
                    said = sentence(event["kind"], event["key"], fact, names)
                    if said is not None and not quiet:
                        print(printable(f"  {cut(said, 300)}"), flush=True)
                    if event["kind"] == "node" and event["key"] == id and _is_over(node, fact):
                        return
        if is_done:  # before it was asked for
            if not quiet:
                print(f"{node} is drained already")
            return
        time.sleep(_LOOK_S)
    raise Failure(f"{node} is not drained {_MARGIN_S:g} s after the deadline; it still drains: see `weft events`")


def sentence(kind: str, key: str, fact: Fact, names: Mapping[str, str]) -> str | None:
    """What a fact means for a drain; None where it says nothing."""
    node, _, replica = key.partition(".")
    name = names.get(node, node)
    match kind, fact["type"]:
        case "node", "draining":
            return f"{name} drains: nothing new is placed there, what runs there has {fact['deadline_s']:g} s"
        case "model", "scaled" if fact["add"]:
            return f"{', '.join(fact['add'])} added: {fact['why']}"
        case "replica", "unplaceable":
            return f"{key} has no place: {fact['reason']}"
        case "replica", "placed":
            on = ", ".join(names.get(member["node"], member["node"]) for member in fact["members"])
            return f"{key} goes to {on}"
        case "run", "ready":
            return f"{replica} answers on {name}"
        case "node", "unassigned":
            return f"{fact['replica']} takes nothing new; what it runs has {fact['deadline_s']:g} s"
        case "run", "stopped":
            return f"{replica} has stopped on {name}{_left(fact['unfinished'])}"
        case "node", "drained":
            return f"{name} is drained{_left(sum(fact['unfinished'].values()))}"
        case _:
            return None


def _is_over(node: str, fact: Fact) -> bool:
    """Whether the drain is done. Raises Failure where it was lifted."""
    if fact["type"] == "resumed":
        raise Failure(f"the drain of {node} was lifted")
    return fact["type"] in ("drained", "removed")


def _left(unfinished: int) -> str:
    if not unfinished:
        return ""
    requests = "1 request was" if unfinished == 1 else f"{unfinished} requests were"
    return f"; {requests} still running at the deadline: told, or gone on elsewhere"
