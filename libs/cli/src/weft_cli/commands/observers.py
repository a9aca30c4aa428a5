"""`weft observers`: who outside may listen."""

import json
import os
import shlex
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from weft_client.failure import Exit, Failure
from weft_client.units import span
from weft_embedded import run_file
from weft_embedded.observers import TLS, NewObserver, Observers
from weft_embedded.state import read_json

from weft_cli import locate
from weft_cli.outcome import show as show_json
from weft_cli.outcome import tell
from weft_cli.render import age, table

_LEAST_KEPT_S, _MOST_KEPT_S = 3_600, 365 * 86_400


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
            "nothing: add it anew" if each.begins is None else f"from {each.begins} on",
        )
        for each in known
    ]
    table(("observer", "made", "expires", "hears"), rows)


def add(
    folder: Path | None,
    trust: Path | None,
    nats: str | None,
    name: str,
    since: Literal["now", "start"],
    keep: str,
    expires: str | None,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Make a place and a credential, and write that to a file that only its owner can read. Raises Failure."""
    kept = span(keep, "--keep")
    if not _LEAST_KEPT_S <= kept <= _MOST_KEPT_S:
        raise Failure(f"--keep {keep}: a place is kept for 1h to 365d", Exit.USAGE)
    new = NewObserver(name, since == "start", kept, None if expires is None else span(expires))
    observers = _observers(folder, trust)
    url = _url(folder, nats)
    file = (out or observers.folder / f"{name}.creds").absolute()
    pem = file.with_suffix(".pem")
    if pem == file:
        raise Failure(f"--out {out}: the mesh's certificate comes to lie there; name it NAME.creds", Exit.USAGE)
    if url.startswith(TLS) and pem.exists():
        raise Failure(f"{pem} is there already: name another file with --out", Exit.USAGE)
    _write_secret(file, lambda: observers.add(new, url), own=out is None)
    if url.startswith(TLS):
        pem.write_text(observers.authority())
    if as_json:
        authority = str(pem) if url.startswith(TLS) else None
        show_json({"observer": name, "url": url, "credential": str(file), "authority": authority})
        return
    print(f"{name} may listen with {file}, which is a secret")
    settings = {"WEFT_NATS_URL": url, "WEFT_NATS_CREDENTIALS": str(file)}
    if url.startswith(TLS):
        settings["WEFT_NATS_AUTHORITY"] = str(pem)
        print(f"and knows the mesh by {pem}, which is none")
    said = " ".join(f"{key}={shlex.quote(value)}" for key, value in settings.items())
    print(f"for example: {said} python docs/observer/node_transitions.py")


def _write_secret(file: Path, made: Callable[[], str], *, own: bool) -> None:
    """Write what `made` makes once there is a file for it, which only its owner can read from its first byte on.

    `own`: the folder belongs to the mesh, and is made where it is missing. Raises Failure.
    """
    try:
        if own:
            file.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Failure(f"{file} is there already: name another file with --out", Exit.USAGE) from None
    except OSError as error:
        raise Failure(f"{file} can't be written: {error.strerror}; name a file with --out", Exit.USAGE) from None
    try:
        with os.fdopen(descriptor, "w") as opened:
            opened.write(made())
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def remove(folder: Path | None, trust: Path | None, nats: str | None, name: str, *, as_json: bool) -> None:
    """Let it listen no more."""
    _observers(folder, trust).remove(name, _url(folder, nats))
    said = f"{name} listens no more: its connections are cut, its credential opens nothing"
    tell(said, {"observer": name}, as_json=as_json)


def _observers(folder: Path | None, trust: Path | None) -> Observers:
    return Observers(trust or locate.state(folder).trust)


def _url(folder: Path | None, nats: str | None) -> str:
    """Where NATS is: as named, else that of the state's own mesh. Raises Failure."""
    if nats is not None:
        return nats
    state = locate.state(folder)
    outside: Any = (read_json(state.settings) or {}).get("outside")
    if outside and outside.get("nats"):
        return str(outside["nats"])
    port, record = (read_json(state.ports) or {}).get("nats"), run_file.read(state)
    if port is None or record is None:
        raise Failure("no mesh runs on this state: name its NATS with --nats URL, and its keys with --trust DIR")
    gateway = urlsplit(record.url)
    host = f"[{gateway.hostname}]" if ":" in str(gateway.hostname) else gateway.hostname
    return f"{'tls' if gateway.scheme == 'https' else 'nats'}://{host}:{port}"
