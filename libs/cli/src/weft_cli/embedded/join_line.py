"""The line that lets another machine work for this mesh. Its token is kept in the state, for the owner's eyes alone.

The token lets a machine ask to join and no more: an admin approves it. Who revokes it, or replaces the mesh's
authority, gets another at the next `up`.
"""

import ssl
from typing import Any

from weft_contracts.certificates import authority_digest, split_token

from weft_cli.client import Gateway
from weft_cli.embedded.reach import elsewhere
from weft_cli.embedded.state import State, read_json, write_private

NAME = "shown by weft status"
_PAGE = 1000


def keep_token(state: State, gateway: Gateway) -> None:
    """See that the state has a token that is good. Raises Failure as the gateway does."""
    kept = read_json(state.machine_token) or {}
    live = {each["id"] for each in _tokens(gateway) if each["state"] == "live"}
    if kept.get("token") in live and _names_authority(kept, gateway):
        return
    made = gateway.post("/api/tokens", {"name": NAME})
    write_private(state.machine_token, f'{{"token": "{made["token"]}", "secret": "{made["secret"]}"}}\n')


def _names_authority(kept: dict[str, Any], gateway: Gateway) -> bool:
    """Whether a kept token is of the authority that the gateway has now: it may have been replaced."""
    try:
        digest = split_token(str(kept["secret"]))[1]
    except (KeyError, ValueError):
        return False
    if gateway.authority is None:
        return digest is None
    return digest == authority_digest(ssl.PEM_cert_to_DER_cert(gateway.authority.read_text()))


def line(state: State, url: str) -> str | None:
    """What to paste on another machine; None where this mesh listens for this machine alone."""
    if not (read_json(state.settings) or {}).get("reach"):
        return None
    secret = (read_json(state.machine_token) or {}).get("secret")
    return f"weft worker --join {elsewhere(url)} --token {secret}" if isinstance(secret, str) else None


def _tokens(gateway: Gateway) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    after = ""
    while True:
        page = gateway.get("/api/tokens", limit=_PAGE, **({"after": after} if after else {}))
        found += page["items"]
        if page["next"] is None:
            return found
        after = page["next"]
