"""`weft tokens`: what machines join with."""

import json
import re
import time
from pathlib import Path
from typing import Any

from weft_cli import where
from weft_cli.client import segment
from weft_cli.embedded import reach
from weft_cli.failure import Exit, Failure
from weft_cli.paging import all_of
from weft_cli.render import age, table

_SPAN = re.compile(r"([0-9]{1,9})([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def show(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print all tokens, without their secrets."""
    found = all_of(where.gateway(folder, url), "/api/tokens")
    if as_json:
        print(json.dumps(found, indent=1))
        return
    table(
        ("token", "name", "state", "approves", "expires"),
        [
            (each["id"], each["name"], each["state"], "yes" if each["auto_approve"] else "no", _left(each))
            for each in found
        ],
    )


def create(
    folder: Path | None, url: str | None, name: str, expires: str | None, *, auto_approve: bool, as_json: bool
) -> None:
    """Make one, and print its secret. Raises Failure with status 2 for a span that is none."""
    gateway = where.gateway(folder, url)
    body = {"name": name, "expires_in_s": None if expires is None else span(expires), "auto_approve": auto_approve}
    made = gateway.post("/api/tokens", body)
    if as_json:
        print(json.dumps(made, indent=1))
        return
    print(f"token {made['token']}; its secret is shown this once:\n\n{made['secret']}\n")
    print(f"on a new machine: weft worker --join {reach.elsewhere(gateway.url)} --token {made['secret']}")


def revoke(folder: Path | None, url: str | None, token: str) -> None:
    """Let nobody join with it any more."""
    where.gateway(folder, url).delete(f"/api/tokens/{segment(token)}")
    print(f"{token} is revoked: nobody joins with it any more, who joined stays")


def span(text: str, option: str = "--expires") -> int:
    """Seconds. Raises Failure with status 2."""
    found = _SPAN.fullmatch(text)
    if found is None or not int(found[1]):
        raise Failure(f"{option} {text}: want a span such as 90s, 30m, 12h or 7d", Exit.USAGE)
    return int(found[1]) * _SECONDS[found[2]]


def _left(token: dict[str, Any]) -> str:
    at = token["expires_at"]
    if at is None:
        return "never"
    return f"in {age(at - time.time())}" if at > time.time() else "expired"
