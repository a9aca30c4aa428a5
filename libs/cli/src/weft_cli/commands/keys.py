"""`weft keys`: what people and programs show to be let in."""

import json
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weft_client import routes
from weft_client.failure import Exit, Failure
from weft_client.units import span
from weft_contracts import api_key

from weft_cli import locate
from weft_cli.outcome import tell
from weft_cli.render import age, printable, table

if TYPE_CHECKING:
    from weft_api import Key

SCOPES = ("admin", "inference", "read")


@dataclass(frozen=True, slots=True)
class KeyOptions:
    """A key to be made."""

    name: str
    scopes: tuple[str, ...]
    models: tuple[str, ...]
    expires: str | None


def show(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Print all keys, without their secrets."""
    found = list(routes.keys(locate.gateway(folder, url)))
    if as_json:
        print(json.dumps(found, indent=1))
        return
    table(("key", "name", "begins with", "scopes", "models", "state", "expires"), [_row(each) for each in found])


def create(folder: Path | None, url: str | None, wanted: KeyOptions, *, as_json: bool) -> None:
    """Make one, and print its secret. Raises Failure with status 2 for a scope or span that is none."""
    if strange := [scope for scope in wanted.scopes if scope not in SCOPES]:
        raise Failure(f"--scope {strange[0]}: want {', '.join(SCOPES[:-1])} or {SCOPES[-1]}", Exit.USAGE)
    body = {
        "name": wanted.name,
        "scopes": list(wanted.scopes),
        "models": list(wanted.models) or None,
        "expires_in_s": None if wanted.expires is None else span(wanted.expires),
    }
    made = routes.make_key(locate.gateway(folder, url), body)
    if as_json:
        print(json.dumps(made, indent=1))
        return
    print(f"key {made['key']}; its secret is shown this once:\n\n{made['secret']}\n")
    print("programs send it as `Authorization: Bearer …`, weft and OpenAI's clients take it as an API key")


def revoke(folder: Path | None, url: str | None, key: str, *, as_json: bool) -> None:
    """Let nothing new begin with it."""
    found = routes.revoke_key(locate.gateway(folder, url), key)
    tell(f"{found['key']} is revoked: nothing new begins with it, what runs, runs on", found, as_json=as_json)


def forget(folder: Path | None, url: str | None, key: str, *, as_json: bool) -> None:
    """Erase its name."""
    found = routes.erase_name(locate.gateway(folder, url), key)
    tell(f"the name of {found['key']} is erased; the key stays as it is", found, as_json=as_json)


def first(*, as_json: bool) -> None:
    """Draw a secret, and say what gateways are told of it. Nobody is asked."""
    secret = api_key.secret_of(secrets.token_bytes(api_key.ENTROPY_BYTES))
    told = api_key.first_key(secret)
    if as_json:
        print(json.dumps({"secret": secret, "WEFT_FIRST_KEY": told}, indent=1))
        return
    print(f"the first admin key, shown this once:\n\n{secret}\n")
    print(f"start each gateway with this, which gives nothing of it away:\n\nWEFT_FIRST_KEY={told}")


def _row(key: "Key") -> tuple[str, ...]:
    models = "all" if key["models"] is None else ", ".join(key["models"])
    name = printable(key["name"] or "")
    return (key["id"], name, key["prefix"], ", ".join(key["scopes"]), models, key["state"], _left(key["expires_at"]))


def _left(at: float | None) -> str:
    if at is None:
        return "never"
    return f"in {age(at - time.time())}" if at > time.time() else "expired"
