"""`weft worker`: this process becomes the keeper of a node that joins a mesh."""

import os
import re
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from weft_contracts.budget import parse_budget

from weft_cli.client import Gateway
from weft_cli.embedded import prerequisites
from weft_cli.embedded.state import default_folder
from weft_cli.failure import Exit, Failure

MODULE = "weft_worker_agent"


@dataclass(frozen=True, slots=True)
class Devices:
    """What is said of the accelerators on the command line; what isn't is left to the environment."""

    use: str | None = None
    budget: str | None = None
    simulate: str | None = None

    @property
    def settings(self) -> dict[str, str]:
        """As environment variables. Raises Failure for a budget that can't be meant."""
        try:
            parse_budget(self.budget or "")
        except ValueError as error:
            raise Failure(f"--vram-budget: {error}", Exit.USAGE) from None
        given = {"WEFT_DEVICES": self.use, "WEFT_VRAM_BUDGET": self.budget, "WEFT_SIMULATE_GPUS": self.simulate}
        return {name: value for name, value in given.items() if value is not None}


def run(
    join: str,
    token: str | None,
    *,
    name: str | None,
    labels: tuple[str, ...],
    host: str | None,
    folder: Path | None,
    max_replicas: int | None = None,
    devices: Devices | None = None,
) -> None:
    """Replace this process by the worker's keeper."""
    if not token:
        raise Failure("a worker needs a registration token: --token, or WEFT_JOIN_TOKEN in its environment", Exit.USAGE)
    prerequisites.check()
    own = settings(
        join, token, name=name, labels=labels, host=host, folder=folder, max_replicas=max_replicas, devices=devices
    )
    os.execve(sys.executable, [sys.executable, "-m", MODULE], {**os.environ, **own})


def settings(
    join: str,
    token: str,
    *,
    name: str | None = None,
    labels: tuple[str, ...] = (),
    host: str | None = None,
    folder: Path | None = None,
    max_replicas: int | None = None,
    devices: Devices | None = None,
) -> dict[str, str]:
    """The worker's settings as environment variables. Raises Failure for what can't be meant."""
    pairs = [each.partition("=") for each in labels]
    if bad := [each for each, (key, equals, _) in zip(labels, pairs, strict=True) if not key or not equals]:
        raise Failure(f"--label {bad[0]}: want KEY=VALUE", Exit.USAGE)
    node = name or re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()) or "worker"
    found = {
        "WEFT_GATEWAY_URL": Gateway(join).url,
        "WEFT_JOIN_TOKEN": token,
        "WEFT_NODE_NAME": node,
        "WEFT_STATE": str((folder or default_folder() / "worker").expanduser().absolute()),
    }
    if pairs:
        found["WEFT_LABELS"] = ",".join(f"{key}={value}" for key, _, value in pairs)
    if max_replicas is not None:
        found["WEFT_MAX_REPLICAS_PER_MODEL"] = str(max_replicas)
    if devices is not None:
        found |= devices.settings
    if host:
        # Where it is reached is where it listens; on a machine behind another's address, WEFT_HTTP_HOST says where.
        found["WEFT_ADVERTISE_HOST"] = host
        found["WEFT_HTTP_HOST"] = os.environ.get("WEFT_HTTP_HOST", host)
    return found
