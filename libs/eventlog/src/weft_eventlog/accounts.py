"""The server's account tokens, over a connection of its system account: what revocations ride on."""

import json
from typing import Any

from nats.aio.client import Client

from weft_eventlog.errors import LogUnavailable, unavailable

LOOKUP = "$SYS.REQ.ACCOUNT.{}.CLAIMS.LOOKUP"
UPDATE = "$SYS.REQ.CLAIMS.UPDATE"
_TIMEOUT = 5.0


async def account_token(client: Client, account: str) -> str | None:
    """An account's token as the server has it, by the account's public key; None for one that it doesn't know.

    Raises LogUnavailable.
    """
    with unavailable(f"the token of the account {account} can't be read"):
        answer = await client.request(LOOKUP.format(account), b"", timeout=_TIMEOUT)
    return answer.data.decode() or None


async def push_account(client: Client, token: str) -> None:
    """Make the server hold this token of an account from now on, over its restarts too. Raises LogUnavailable."""
    with unavailable("an account's token can't be pushed"):
        answer = await client.request(UPDATE, token.encode(), timeout=_TIMEOUT)
    said: dict[str, Any] = json.loads(answer.data)
    if "error" in said or said.get("data", {}).get("code") != 200:
        raise LogUnavailable(f"the server did not take an account's token: {said.get('error') or said}")
