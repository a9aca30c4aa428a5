"""How the launcher of a mesh is started: a program of its own, so that the command line's libraries, which `weft up`
has loaded by then, don't stay resident beside the mesh.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_embedded.state import State, read_json, write_private

MODULE = "weft_embedded"


@dataclass(frozen=True, slots=True)
class Options:
    """What `up` was asked for."""

    state: State
    port: int | None = None
    workers: int | None = None
    """None: as many as this state had last, one in a new state."""
    deploy: bool = True
    """Whether the built-in model is deployed in a state that never had it."""
    listen: str | None = None
    """The address of the gateway and of NATS; None: as last time, loopback in a new state."""
    nats_port: int | None = None
    """None: as last time; in a new state any free one."""
    certificate: Path | None = None
    key: Path | None = None
    """What people's browsers are shown; None: as last time, the mesh's own."""
    bundle: Path | None = None
    """What further machines are installed from; None: from what this one is."""


def command(options: Options, report_fd: int | None = None) -> list[str]:
    """The command line that runs the launcher; `parse` reads its last part."""
    said = {
        "state": str(options.state.folder),
        "port": options.port,
        "workers": options.workers,
        "deploy": options.deploy,
        "listen": options.listen,
        "nats_port": options.nats_port,
        "certificate": _text(options.certificate),
        "key": _text(options.key),
        "bundle": _text(options.bundle),
        "report_fd": report_fd,
    }
    return [sys.executable, "-m", MODULE, json.dumps(said)]


def parse(text: str) -> tuple[Options, int | None]:
    """The options and the descriptor of the waiting parent's pipe."""
    said: Mapping[str, Any] = json.loads(text)
    options = Options(
        State(Path(said["state"])),
        said["port"],
        said["workers"],
        said["deploy"],
        said["listen"],
        said["nats_port"],
        _path(said["certificate"]),
        _path(said["key"]),
        _path(said["bundle"]),
    )
    return options, said["report_fd"]


def workers_wanted(options: Options) -> int:
    """How many workers this `up` starts; the next one starts as many if it isn't told otherwise.

    A worker that was left out would be a node that fell silent, and its replicas would wait for it.
    """
    known = read_json(options.state.settings) or {}
    workers = int(known.get("workers", 1)) if options.workers is None else options.workers
    if known.get("workers") != workers:
        write_private(options.state.settings, json.dumps({**known, "workers": workers}) + "\n")
    return workers


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)
