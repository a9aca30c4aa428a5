"""`weft observers`: who outside may listen."""

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from weft_cli import where
from weft_cli.commands.tokens import span
from weft_cli.embedded import run_file
from weft_cli.embedded.state import read_json
from weft_cli.failure import Exit, Failure
from weft_cli.observers import TLS, Observers
from weft_cli.render import age, table


def show(folder: Path | None, trust: Path | None, *, as_json: bool) -> None:
    """Print who may listen."""
    known = _observers(folder, trust).known()
    if as_json:
        print(json.dumps([asdict(each) for each in known], indent=1))
        return
    now = time.time()
    rows = [
        (
            each.name,
            f"{age(now - each.made_at)} ago",
            "never" if each.expires_at is None else f"in {age(each.expires_at - now)}",
        )
        for each in known
    ]
    table(("observer", "made", "expires"), rows)


def add(
    folder: Path | None, trust: Path | None, nats: str | None, name: str, expires: str | None, out: Path | None
) -> None:
    """Make a credential and write it to a file that only its owner can read. Raises Failure."""
    observers = _observers(folder, trust)
    url = _url(folder, nats)
    file = out or Path(f"{name}.creds")
    pem = file.with_suffix(".pem")
    for each in (file, *([pem] if url.startswith(TLS) else [])):
        if each.exists():
            raise Failure(f"{each} is there already: name another file with --out", Exit.USAGE)
    text = observers.add(name, None if expires is None else span(expires))
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(text)
    print(f"{name} may listen with {file}, which is a secret")
    shown = [url, str(file)]
    if url.startswith(TLS):
        shown.append(str(pem))
        pem.write_text(observers.authority())
        print(f"and knows the mesh by {pem}, which is none")
    print(f"for example: python docs/observer/node_transitions.py {' '.join(shown)}")


def remove(folder: Path | None, trust: Path | None, nats: str | None, name: str) -> None:
    """Let it listen no more."""
    _observers(folder, trust).remove(name, _url(folder, nats))
    print(f"{name} listens no more: its connections are cut, its credential opens nothing")


def _observers(folder: Path | None, trust: Path | None) -> Observers:
    return Observers(trust or where.state(folder).trust)


def _url(folder: Path | None, nats: str | None) -> str:
    """Where NATS is: as named, else that of the state's own mesh. Raises Failure."""
    if nats is not None:
        return nats
    state = where.state(folder)
    outside: Any = (read_json(state.settings) or {}).get("outside")
    if outside and outside.get("nats"):
        return str(outside["nats"])
    port, record = (read_json(state.ports) or {}).get("nats"), run_file.read(state)
    if port is None or record is None:
        raise Failure("no mesh runs on this state: name its NATS with --nats URL, and its keys with --trust DIR")
    gateway = urlsplit(record.url)
    host = f"[{gateway.hostname}]" if ":" in str(gateway.hostname) else gateway.hostname
    return f"{'tls' if gateway.scheme == 'https' else 'nats'}://{host}:{port}"
