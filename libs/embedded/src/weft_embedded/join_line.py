"""The line that lets another machine work for this mesh. Its token is kept in the state, for the owner's eyes alone.

The token lets a machine ask to join and no more: an admin approves it. It lasts a day (`WEFT_JOIN_LINE_EXPIRES`); who
asks for the line when less than a quarter of that is left, has revoked it, or replaced the mesh's authority, gets
another.
"""

import os
import ssl
import time
from typing import Any

from weft_client import routes
from weft_client.gateway import Gateway
from weft_client.units import span
from weft_contracts.certificates import authority_digest, split_token

from weft_embedded.listen_address import elsewhere
from weft_embedded.state import State, read_json, write_private

NAME = "shown by weft status"
EXPIRES = "WEFT_JOIN_LINE_EXPIRES"
_LASTS = "24h"


def keep_token(state: State, gateway: Gateway) -> None:
    """See that the state has a token that is good. Raises Failure as the gateway does."""
    lasts = span(os.environ.get(EXPIRES) or _LASTS, EXPIRES)
    kept = read_json(state.machine_token) or {}
    known = next((each for each in routes.tokens(gateway) if each["id"] == kept.get("token")), None)
    if known is not None and known["state"] == "live" and _names_authority(kept, gateway):
        if known["expires_at"] is None:  # of a version whose tokens were for ever
            routes.revoke_token(gateway, known["id"])
        elif known["expires_at"] - time.time() > lasts / 4:
            return
    made = routes.make_token(gateway, {"name": NAME, "expires_in_s": lasts})
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


def install_line(state: State, url: str) -> str | None:
    """What to paste on a machine that has no Weft; None where the gateway serves none.

    Nothing that comes is believed before it was held against the digest in this line, which covers all the rest. The
    token is in the environment of the one command that needs it, where other people of that machine don't see it.
    """
    secret = (read_json(state.machine_token) or {}).get("secret")
    script = (read_json(state.install_record) or {}).get("script")
    if line(state, url) is None or not isinstance(secret, str) or not isinstance(script, str):
        return None
    at = elsewhere(url)
    return (
        f"curl -fsSko weft-install {at}/install/{script}.sh && echo '{script}  weft-install' | sha256sum -c --quiet &&"
        f" WEFT_JOIN_TOKEN={secret} sh weft-install --join {at}"
    )


def told(line: str, install: str | None) -> list[str]:
    """Both, as lines for people."""
    found = ["on a new machine, then `weft nodes approve NAME` here:", "", f"  {line}", ""]
    return found if install is None else [*found, "or, where there is no Weft yet:", "", f"  {install}", ""]
