"""NATS and Postgres that run elsewhere: `WEFT_NATS_URL` and `WEFT_POSTGRES_URL`, instead of the launcher's own servers.

The state remembers them, so that an `up` without them doesn't begin an empty log of its own beside the real one.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import cast
from urllib.parse import urlsplit

from weft_client.failure import Exit, Failure

from weft_embedded.state import State, read_json, write_private

NATS, POSTGRES = "WEFT_NATS_URL", "WEFT_POSTGRES_URL"


@dataclass(frozen=True, slots=True)
class ExternalServers:
    """Where servers are that this launcher doesn't start; None: it does."""

    nats: str | None = None
    """One server or several, separated by commas."""
    postgres: str | None = None


def chosen(state: State, environ: Mapping[str, str] = os.environ) -> ExternalServers:
    """What this `up` was asked for, else what the last one was. Raises Failure for what can't be meant."""
    known = read_json(state.settings) or {}
    last = known.get("outside")
    before = ExternalServers(**cast("dict[str, str | None]", last)) if isinstance(last, dict) else ExternalServers()
    found = ExternalServers(environ.get(NATS) or before.nats, environ.get(POSTGRES) or before.postgres)
    if found.nats is not None:
        for url in found.nats.split(","):
            _check(url)
        if before.nats is None and (state.nats / "jetstream").exists():
            raise Failure(
                f"{NATS} names outside servers, and the log of {state.folder} lies in its own NATS:"
                " use another state, or leave the variable out",
                Exit.USAGE,
            )
        if not state.trust.exists():
            raise Failure(
                f"{NATS} names outside servers, which must know this mesh's keys:"
                f" make their configuration first: weft nats-config --state {state.folder} NAME=HOST …",
                Exit.USAGE,
            )
    if found.postgres is not None and urlsplit(found.postgres).scheme not in ("postgres", "postgresql"):
        raise Failure(f"{POSTGRES}: want postgresql://USER:PASSWORD@HOST:PORT/DATABASE", Exit.USAGE)
    if found != before:
        write_private(state.settings, json.dumps({**known, "outside": asdict(found)}) + "\n")
    return found


def _check(url: str) -> None:
    parts = urlsplit(url)
    try:
        good = parts.scheme == "tls" and parts.hostname and parts.port and not parts.username
    except ValueError:
        good = False
    if not good:
        raise Failure(f"{NATS}: want tls://HOST:PORT, several separated by commas, not {url!r}", Exit.USAGE)
