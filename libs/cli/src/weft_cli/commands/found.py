"""`weft found`: the keys of a mesh whose parts others start."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weft_client.failure import Exit, Failure
from weft_servers.cluster_conf import BadMember, checked_members
from weft_servers.port import LOOPBACK

from weft_cli.outcome import show

if TYPE_CHECKING:
    from weft_embedded.founded_folder import Founding

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}|[0-9A-Fa-f:.]{2,45}")
_WITH_PORT = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9][A-Za-z0-9._-]{0,252})(:[0-9]{1,5})?")
ALWAYS = ("localhost", "127.0.0.1")
"""A gateway is believed on its own machine, whatever else it is called."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the command line says; None and empty: nothing, so what the folder was founded for holds."""

    gateways: tuple[str, ...]
    nats: tuple[str, ...]
    nodes: int | None
    postgres: str | None
    monitor: str | None


def run(folder: Path, said: Said, *, kubernetes: bool, as_json: bool) -> None:
    """Make or renew them; say what lies where, or print them for kubectl. Raises Failure for what can't be meant."""
    from weft_embedded import founded_folder, kubernetes_objects
    from weft_identity import trust

    if kubernetes and sys.stdout.isatty():
        raise Failure(
            "--kubernetes prints secrets, and nobody should read them: add | kubectl apply --server-side -n weft -f -",
            Exit.USAGE,
        )
    for host in filter(None, (*said.gateways, said.monitor)):
        if not _HOST.fullmatch(host):
            raise Failure(f"{host!r} is no name or address of a host, such as weft.example.org or 10.0.0.5", Exit.USAGE)
    if said.postgres is not None and not _WITH_PORT.fullmatch(said.postgres):
        raise Failure(f"--postgres {said.postgres!r}: want HOST or HOST:PORT", Exit.USAGE)
    own = folder.expanduser().absolute()
    try:
        founding = _founding(said, founded_folder.remembered(own), kubernetes=kubernetes)
    except BadMember as error:
        raise Failure(str(error), Exit.USAGE) from None
    if kubernetes and (fault := kubernetes_objects.unlike(founding)) is not None:
        raise Failure(fault, Exit.USAGE)
    try:
        founded_folder.found(own, founding)
        if kubernetes:
            print(json.dumps(kubernetes_objects.of_folder(own, founding)))
            return
    except (trust.NoTrust, trust.ExposedTrust, OSError) as error:
        raise Failure(str(error)) from None
    url = ",".join(each.url for each in founding.members)
    if as_json:
        show({"folder": str(own), "gateways": list(founding.gateways), "nats": url, "nodes": founding.nodes})
        return
    print(f"{own} holds the mesh's keys: keep it, and let nobody else read it")
    print(f"  gateways are believed as {', '.join(founding.gateways)}; NATS is at {url}")
    print(f"  the token in join-token lets {founding.nodes} nodes in; admin-key is the first admin's key")


def _founding(said: Said, before: "Founding | None", *, kubernetes: bool) -> "Founding":
    from weft_embedded import kubernetes_objects
    from weft_embedded.founded_folder import Founding

    servers = kubernetes_objects.members(3) if kubernetes else checked_members(["nats=nats"])
    known = before or Founding(("gateway",), servers, 10, "postgres", "0.0.0.0" if kubernetes else LOOPBACK)
    return Founding(
        tuple(dict.fromkeys((*(said.gateways or known.gateways), *ALWAYS))),
        checked_members(said.nats) if said.nats else known.members,
        known.nodes if said.nodes is None else said.nodes,
        said.postgres or known.postgres,
        said.monitor or known.monitor,
    )
