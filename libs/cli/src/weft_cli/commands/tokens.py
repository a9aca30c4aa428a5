"""`weft tokens`: what machines join with."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_client import routes
from weft_client.command_names import pasteable
from weft_client.units import span
from weft_embedded import listen_address

from weft_cli import locate
from weft_cli.outcome import tell
from weft_cli.render import age, table

if TYPE_CHECKING:
    from weft_api import Token


def show(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print all tokens, without their secrets."""
    found = list(routes.tokens(locate.gateway(folder, url)))
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
    folder: Path | None,
    url: str | None,
    name: str,
    expires: str | None,
    most_waiting: int | None,
    *,
    auto_approve: bool,
    as_json: bool,
) -> None:
    """Make one, and print its secret. Raises Failure with status 2 for a span that is none."""
    gateway = locate.gateway(folder, url)
    body: dict[str, Any] = {
        "name": name,
        "expires_in_s": None if expires is None else span(expires),
        "auto_approve": auto_approve,
    }
    if most_waiting is not None:
        body["most_waiting"] = most_waiting
    made = routes.make_token(gateway, body)
    if as_json:
        print(json.dumps(made, indent=1))
        return
    print(f"token {made['token']}; its secret is shown this once:\n\n{made['secret']}\n")
    line = f"weft worker --join {listen_address.elsewhere(gateway.url)} --token {made['secret']}"
    print(f"on a new machine: {pasteable(line)}")


def revoke(folder: Path | None, url: str | None, token: str, *, as_json: bool) -> None:
    """Let nobody join with it any more."""
    answer = routes.revoke_token(locate.gateway(folder, url), token)
    tell(f"{token} is revoked: nobody joins with it any more, who joined stays", answer, as_json=as_json)


def _left(token: "Token") -> str:
    at = token["expires_at"]
    if at is None:
        return "never"
    return f"in {age(at - time.time())}" if at > time.time() else "expired"
