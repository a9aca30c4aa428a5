"""What nodes are to install of engines ahead of need, to remove, and to upgrade."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from weft_client import routes
from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway

from weft_cli import locate
from weft_cli.outcome import show, tell

_OUT = ("pending", "rejected", "cut_off", "removed")


def install(
    folder: Path | None, url: str | None, engine: str, named: tuple[str, ...], selector: str | None, *, as_json: bool
) -> None:
    """Have nodes install an engine. Raises Failure where none takes it, and with status 2 for what can't be meant."""
    if named and selector is not None:
        raise Failure("--node names the nodes: it takes no --selector beside it", Exit.USAGE)
    gateway = locate.gateway(folder, url)
    answers: list[dict[str, Any]] = []
    refusals: list[str] = []
    for node in named or _chosen(gateway, selector):
        try:
            answer = dict(routes.install_backend(gateway, node, engine))
            answers.append({**answer, "node_name": node})
        except Failure as refusal:
            refusals.append(str(refusal))
    if not answers:
        raise Failure("; ".join(refusals) or f"no node has the labels {selector}: `weft nodes` lists them")
    if as_json:
        show([*answers, *({"error": each} for each in refusals)])
        return
    for each in answers:
        print(f"{each['node_name']} is to have {engine} {each['version']} for {each['vendor']}: `weft backends` tells")
    for sentence in refusals:
        print(sentence)


def uninstall(folder: Path | None, url: str | None, engine: str, node: str, version: str, *, as_json: bool) -> None:
    """Have a node remove what it installed of an engine."""
    answer = routes.uninstall_backend(locate.gateway(folder, url), node, engine, version)
    tell(f"{node} removes {engine}{f' {version}' if version else ''}", answer, as_json=as_json)


def upgrade(folder: Path | None, url: str | None, engine: str, *, as_json: bool) -> None:
    """Move an engine's replicas to what its recipe installs today."""
    answer = routes.upgrade_backend(locate.gateway(folder, url), engine)
    tell(f"replicas of {engine} move to what its recipe installs today", answer, as_json=as_json)


def _chosen(gateway: Gateway, selector: str | None) -> list[str]:
    """Names of the nodes that bear the labels; without any, of all that may work."""
    labels = [part.strip() for part in (selector or "").split(",") if part.strip()]
    query = "&".join(f"label={quote(label, safe='')}" for label in labels)
    found = routes.nodes(gateway, query)
    return [each["name"] for each in found if each["state"] not in _OUT]
