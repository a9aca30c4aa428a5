"""The file of a worker's unit: made where there is none, and how long the worker that it describes takes to end."""

import json
import os
import re
import shlex
import tempfile
import tomllib
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
    """Write it, for its owner alone. One that joins the same mesh is left but for the token, which a new line brings.

    Raises Failure: it is there and others can read it, or says another mesh, or there is too little to write.
    """
    if file.exists():
        if file.stat().st_mode & 0o077:
            raise Failure(f"{file} holds a token, and others can read it: chmod 600 {file}")
        if said.join is not None:
            _keep_up(file, Gateway(said.join).url, said.token)
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


def _keep_up(file: Path, join: str, token: str | None) -> None:
    """Raises Failure."""
    try:
        text = file.read_text()
        known = tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise Failure(f"{file} can't be read: {error}", Exit.USAGE) from None
    own = known.get("join")
    if not isinstance(own, str) or Gateway(own).url != join:
        raise Failure(f"{file} is there already, and says what the worker joins: leave --join out, or edit it")
    if not token or known.get("token") == token:
        return
    line = f"token = {json.dumps(token)}\n"
    anew, found = re.subn(r"^token[ \t]*=.*\n?", lambda _: line, text, count=1, flags=re.MULTILINE)
    anew = anew if found else line + text
    try:
        whole = tomllib.loads(anew) == {**known, "token": token}
    except tomllib.TOMLDecodeError:
        whole = False
    if not whole:
        raise Failure(f"{file}: its token can't be replaced: write the new one into it")
    _replace(file, anew)


def _replace(file: Path, text: str) -> None:
    """With the same owner. Raises Failure."""
    try:
        owner = file.stat()
        descriptor, fresh = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(descriptor, "w") as out:
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
                out.write(text)
            Path(fresh).replace(file)
        except OSError:
            Path(fresh).unlink()
            raise
    except OSError as error:
        raise Failure(f"{file} can't be written: {error.strerror}") from None


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
