"""The server's account tokens, over a connection of its system account: what revocations ride on."""

import asyncio
import json
from typing import Any

from nats.aio.client import Client

from weft_eventlog.errors import LogUnavailable, unavailable

LOOKUP = "$SYS.REQ.ACCOUNT.{}.CLAIMS.LOOKUP"
UPDATE = "$SYS.REQ.CLAIMS.UPDATE"
_TIMEOUT = 5.0
_SERVERS = "$SYS.REQ.SERVER.PING.VARZ"
_ANSWERS_S = 2.0


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


async def servers(client: Client) -> list[dict[str, Any]]:
    """What each server of the cluster says of itself (`/varz`), of those that answer within 2 s, and at least one.

    Raises LogUnavailable.
    """
    found: list[dict[str, Any]] = []
    inbox = client.new_inbox()
    with unavailable("the servers don't say what they are"):
        subscription = await client.subscribe(inbox)
        await client.publish(_SERVERS, b"", reply=inbox)
        deadline = asyncio.get_running_loop().time() + _ANSWERS_S
        try:
            while (left := deadline - asyncio.get_running_loop().time()) > 0 or not found:
                answer = await subscription.next_msg(timeout=max(left, _TIMEOUT if not found else 0.01))
                found.append(json.loads(answer.data)["data"])
        except TimeoutError:
            if not found:
                raise
        finally:
            await subscription.unsubscribe()
    return found
