"""How the launcher of a mesh is started: a program of its own, so that the command line's libraries, which `weft up`
has loaded by then, don't stay resident beside the mesh.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_servers.port import LOOPBACK

from weft_cli.embedded.state import State

MODULE = "weft_cli.embedded"


@dataclass(frozen=True, slots=True)
class Options:
    """What `up` was asked for."""

    state: State
    port: int | None = None
    workers: int | None = None
    """None: as many as this state had last, one in a new state."""
    deploy: bool = True
    """Whether the built-in model is deployed in a state that never had it."""
    host: str = LOOPBACK
    """Where the gateway listens; all else stays on loopback."""


def command(options: Options, report_fd: int | None = None) -> list[str]:
    """The command line that runs the launcher; `parse` reads its last part."""
    said = {
        "state": str(options.state.folder),
        "port": options.port,
        "workers": options.workers,
        "deploy": options.deploy,
        "host": options.host,
        "report_fd": report_fd,
    }
    return [sys.executable, "-m", MODULE, json.dumps(said)]


def parse(text: str) -> tuple[Options, int | None]:
    """The options and the descriptor of the waiting parent's pipe."""
    said: Mapping[str, Any] = json.loads(text)
    options = Options(State(Path(said["state"])), said["port"], said["workers"], said["deploy"], said["host"])
    return options, said["report_fd"]
