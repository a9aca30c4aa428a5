"""`weft worker`: this process becomes the supervisor of a node that joins a mesh."""

import ipaddress
import os
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway
from weft_embedded import prerequisites
from weft_embedded.state import default_folder
from weft_runtime import secret_pipe

from weft_cli import worker_options

MODULE = "weft_worker_agent"
_TOKEN, _DESCRIPTOR = "WEFT_JOIN_TOKEN", "WEFT_JOIN_TOKEN_FD"
_LOOPBACK = "127.0.0.1"


def run(flags: Mapping[str, str | None], config: Path | None) -> None:
    """Replace this process by the worker's supervisor. `flags` are values by the options' names, None: not given."""
    own = {**os.environ, **settings(flags, os.environ, config)}
    prerequisites.check()
    own[_DESCRIPTOR] = str(_handed(own.pop(_TOKEN)))
    os.execve(sys.executable, [sys.executable, "-m", MODULE], own)


def _handed(token: str) -> int:
    """A pipe that holds the token: in the environment everything that this user runs could read it."""
    try:
        return secret_pipe.give(token.encode())
    except ValueError as error:
        raise Failure(f"that is no registration token: {error}", Exit.USAGE) from None


def settings(flags: Mapping[str, str | None], environ: Mapping[str, str], config: Path | None = None) -> dict[str, str]:
    """The worker's settings as environment variables. Raises Failure for what can't be meant, or is missing."""
    said = worker_options.settings(flags, environ, config)
    if not said.get("WEFT_GATEWAY_URL"):
        raise Failure("a worker needs the mesh's address: --join URL, or WEFT_GATEWAY_URL", Exit.USAGE)
    if not said.get("WEFT_JOIN_TOKEN"):
        raise Failure("a worker needs a registration token: --token, or WEFT_JOIN_TOKEN in its environment", Exit.USAGE)
    url = said["WEFT_GATEWAY_URL"] = Gateway(said["WEFT_GATEWAY_URL"]).url
    said.setdefault("WEFT_NODE_NAME", re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()) or "worker")
    folder = Path(said.get("WEFT_STATE") or default_folder() / "worker")
    said["WEFT_STATE"] = str(folder.expanduser().absolute())
    host = said.setdefault("WEFT_ADVERTISE_HOST", own_address(url))
    # Where it is reached is where it listens; on a machine behind another's address, WEFT_HTTP_HOST says where.
    said["WEFT_HTTP_HOST"] = environ.get("WEFT_HTTP_HOST") or host
    return said


def own_address(url: str) -> str:
    """This machine's address on its way to a gateway, from which the others most likely reach it, too.

    Raises Failure where there is no such way.
    """
    parts = urlsplit(url)
    name = parts.hostname or ""
    try:
        found = socket.getaddrinfo(name, parts.port or 443, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, target = found[0]
        if ipaddress.ip_address(str(target[0]).partition("%")[0]).is_loopback:
            return _LOOPBACK
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)  # of a datagram socket: nothing is sent
            return str(probe.getsockname()[0])
    except OSError as error:
        raise Failure(
            f"this machine has no way to {name} ({error.strerror or error}):"
            " is --join right? Else say under which address this machine is reached: --advertise HOST",
            Exit.USAGE,
        ) from None
