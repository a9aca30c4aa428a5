"""`weft events`: the log for people, and the catalogue of what can stand in it."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from weft_client.gateway import Unreachable

from weft_cli import event_pages, locate
from weft_cli.render import cut, printable, table

if TYPE_CHECKING:
    from weft_api import Commit

_SILENCE_S = 90.0
"""The gateway's stream says something at least this often, if only that it lives."""
_AGAIN_S = 1.0


def run(folder: Path | None, url: str | None, *, after: int, follow: bool, as_json: bool) -> None:
    """Print events from behind a position; with `follow` until Ctrl-C, over a gateway's restarts too."""
    gateway = locate.gateway(folder, url)
    for page in event_pages.pages(gateway, after):
        for event in page:
            _show(event, as_json=as_json)
            after = event["sequence"]
    while follow:
        try:
            for kind, data in gateway.stream("GET", "/api/events", timeout_s=_SILENCE_S, after=after):
                if kind == "commit":
                    event: Commit = json.loads(data)
                    _show(event, as_json=as_json)
                    after = event["sequence"]
        except Unreachable:
            pass  # it may be restarting; nothing is missed, for the position is known
        time.sleep(_AGAIN_S)


def catalogue(*, as_json: bool) -> None:
    """Print every kind of event there can be: its writers, its rate, who may pass over it, what it says."""
    from weft_contracts.catalogue import BUDGET_PER_SECOND, CATALOGUE, per_second

    if as_json:
        entries = [
            {
                "event": f"{each.kind}.{each.type}",
                "version": each.version,
                "writers": each.writers,
                "per_day": each.per_day,
                "ignorable": each.ignorable,
                "schema": each.fact.model_json_schema(),
            }
            for each in CATALOGUE
        ]
        print(json.dumps(entries, indent=1))
        return
    table(
        ("event", "v", "written by", "a day", "says"),
        [
            (
                f"{each.kind}.{each.type}",
                each.version,
                ", ".join(each.writers) if len(each.writers) < 5 else "any service",
                f"{each.per_day:,.0f}",
                _first_line(each.fact.__doc__) + (" (may be passed over)" if each.ignorable else ""),
            )
            for each in CATALOGUE
        ],
    )
    print(
        f"\n{len(CATALOGUE)} events; at 1,000 nodes and 10,000 replicas {per_second():.2f} a second on average,"
        f" {BUDGET_PER_SECOND:g} are allowed"
    )


def asyncapi() -> None:
    """Print the AsyncAPI document of all that may pass through the log."""
    from importlib.metadata import version

    from weft_runtime import asyncapi as document

    print(json.dumps(document.catalogue(version("weft-cli")), indent=1))


def _show(event: "Commit", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(event), flush=True)
        return
    at = time.strftime("%H:%M:%S", time.localtime(event["at"]))
    for fact in event["facts"]:
        said = {k: v for k, v in fact.items() if k not in ("type", "v")}
        text = json.dumps(said, ensure_ascii=False) if said else ""
        name = f"{event['kind']}.{fact['type']}"
        line = f"{event['sequence']:>6} {at} {name} {event['key']} {cut(text, 160)}"
        print(printable(line).rstrip(), flush=True)


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().splitlines()[0] if doc else ""
