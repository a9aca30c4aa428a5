"""The file of a worker's unit: made where there is none, and how long the worker that it describes takes to end."""

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway

from weft_cli import worker_options
from weft_cli.systemd.parts import WORKER_MARGIN_S

DRAIN_S, STOP_S = 60.0, 10.0
"""What a worker takes where nothing else is said: for its drain, and for running requests."""
TOKEN = "WEFT_JOIN_TOKEN"


@dataclass(frozen=True, slots=True)
class WorkerSaid:
    """What a new file is to hold."""

    join: str | None = None
    name: str | None = None
    labels: str | None = None
    token: str | None = None


def make_if_lacking(file: Path, said: WorkerSaid) -> None:
    """Write it, for its owner alone. Raises Failure: it is there and others can read it, or there is too little to
    write."""
    if file.exists():
        if file.stat().st_mode & 0o077:
            raise Failure(f"{file} holds a token, and others can read it: chmod 600 {file}")
        if said.join is not None:
            raise Failure(f"{file} is there already, and says what the worker joins: leave --join out, or edit it")
        return
    if said.join is None or not said.token:
        raise Failure(
            f"there is no {file}, which says what the worker joins: write it, or say --join URL,"
            f" with the token in {TOKEN}",
            Exit.USAGE,
        )
    values = {"join": Gateway(said.join).url, "token": said.token, "name": said.name, "labels": said.labels}
    # A text of JSON is one of TOML.
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items() if value is not None)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise Failure(f"{file} can't be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w") as out:
        out.write(text)


def stop_bound_s(file: Path, environment: Path, *, lacking_ok: bool = False) -> float:
    """Seconds from the signal to a worker's end, by its settings. Raises Failure for what can't be meant there."""
    variables = _variables(environment)
    there = file if file.exists() or not lacking_ok else None
    said = worker_options.settings({}, variables, there)
    drain = float(said.get("WEFT_DRAIN_TIMEOUT") or DRAIN_S)
    try:
        stop = float(variables.get("WEFT_STOP_TIMEOUT") or STOP_S)
    except ValueError:
        raise Failure(f"{environment}: WEFT_STOP_TIMEOUT: want a number of seconds", Exit.USAGE) from None
    return drain + stop + WORKER_MARGIN_S


def _variables(file: Path) -> Mapping[str, str]:
    """Those of a file as systemd reads it. Raises Failure."""
    found: dict[str, str] = {}
    if not file.exists():
        return found
    try:
        for line in file.read_text().splitlines():
            name, equals, value = line.strip().partition("=")
            if equals and not name.startswith(("#", ";")):
                found[name.strip()] = "".join(shlex.split(value))
    except (OSError, ValueError) as error:
        raise Failure(f"{file} can't be read: {error}") from None
    return found
