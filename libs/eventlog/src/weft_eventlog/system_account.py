"""What only NATS's system account may ask: for the accounts' tokens, which carry revocations, and who is connected."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from nats.aio.client import Client

from weft_eventlog.errors import LogUnavailable, unavailable

LOOKUP = "$SYS.REQ.ACCOUNT.{}.CLAIMS.LOOKUP"
UPDATE = "$SYS.REQ.CLAIMS.UPDATE"
_TIMEOUT = 5.0
TOTALS = "$SYS.REQ.ACCOUNT.PING.STATZ"
CONNECTIONS = "$SYS.REQ.SERVER.PING.CONNZ"
SERVERS = "$SYS.REQ.SERVER.PING.VARZ"
_ANSWERS_S = 2.0
_PAGE = 256
"""Connections that one answer tells of: 2.7 kB each, most of it the user's token."""
_PAGES = 400


class WholeAccount(NamedTuple):
    """Who is connected, and whether that is all that there is to know."""

    connections: list[tuple[str, dict[str, Any]]]
    """Each with its server's id, as `/connz` tells them."""
    unheard: tuple[str, ...]
    """Names of the cluster's servers that did not tell in time: what is connected there is not known."""


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
    with unavailable("the servers don't say what they are"):
        return await _answers(client, SERVERS, b"", lambda found: False, _ANSWERS_S)


async def account_totals(client: Client, account: str, servers: int) -> list[dict[str, Any]]:
    """What passes through an account, by each of so many servers (`/accstatz`): `conns`, and `received` since its
    start. It costs the servers next to nothing. Raises LogUnavailable."""
    with unavailable("the servers don't say what passes through an account"):
        body = json.dumps({"accounts": [account], "include_unused": True}).encode()
        found = await _answers(client, TOTALS, body, lambda found: len(found) >= servers, _ANSWERS_S)
        return [each for one in found for each in one.get("account_statz") or ()]


async def account_connections(client: Client, account: str, servers: int) -> list[tuple[str, dict[str, Any]]]:
    """Each connection of an account with its server's id, as `/connz` tells them, with `authorized_user`.

    Cost: about 10 µs each for the server, and as much for the one who asks. Raises LogUnavailable.
    """
    return (await _connections(client, account, servers))[0]


async def whole_account(client: Client, account: str) -> WholeAccount:
    """Each connection of an account, and which servers of the cluster didn't tell theirs within 2 s.

    The servers that there should be are those that replicate JetStream's own account of itself: one that is away stands
    there until it is taken out of the cluster. Raises LogUnavailable.
    """
    with unavailable("the servers don't say what they are"):
        said = await _answers(client, SERVERS, b"", _are_all, _ANSWERS_S)
    names = {str(one["server_id"]): str(one["server_name"]) for one in said}
    connections, heard = await _connections(client, account, len(names))
    unheard = (_members(said) | set(names.values())) - {names[id] for id in heard if id in names}
    return WholeAccount(connections, tuple(sorted(unheard)))


async def _connections(client: Client, account: str, servers: int) -> tuple[list[tuple[str, dict[str, Any]]], set[str]]:
    """The connections that so many servers tell of, and the ids of those that told all of theirs."""
    found: list[tuple[str, dict[str, Any]]] = []
    heard: set[str] | None = None
    with unavailable("the servers don't say who is connected"):
        for page in range(_PAGES):
            asked = {"acc": account, "auth": True, "offset": page * _PAGE, "limit": _PAGE}
            body = json.dumps(asked).encode()
            said = await _answers(client, CONNECTIONS, body, lambda found: len(found) >= servers, _ANSWERS_S)
            found += [(str(one["server_id"]), each) for one in said for each in one.get("connections") or ()]
            answered = {str(one["server_id"]) for one in said}
            heard = answered if heard is None else heard & answered
            if all(int(one.get("total") or 0) <= (page + 1) * _PAGE for one in said):
                break
    return found, heard or set()


def _members(said: list[dict[str, Any]]) -> set[str]:
    """The names of the servers that replicate JetStream's account of itself, as any of them tells it."""
    metas: list[dict[str, Any]] = [(one.get("jetstream") or {}).get("meta") or {} for one in said]
    return {str(peer["name"]) for meta in metas for peer in meta.get("replicas") or ()}


def _are_all(said: list[dict[str, Any]]) -> bool:
    """Whether all servers that those who answered know of have answered. One without a cluster is all."""
    names = {str(one["server_name"]) for one in said}
    alone = all(not (one.get("cluster") or {}).get("name") for one in said)
    members = _members(said)
    return alone or (bool(members) and members <= names)


async def _answers(
    client: Client, subject: str, body: bytes, enough: Callable[[list[dict[str, Any]]], bool], within_s: float
) -> list[dict[str, Any]]:
    """What the servers answer: until that is enough, or those that did in time; one is waited for longer.

    Each with `server_id` and `server_name`.
    """
    found: list[dict[str, Any]] = []
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    await client.publish(subject, body, reply=inbox)
    deadline = asyncio.get_running_loop().time() + within_s
    try:
        while (left := deadline - asyncio.get_running_loop().time()) > 0 or not found:
            answer = await subscription.next_msg(timeout=max(left, _TIMEOUT if not found else 0.01))
            said: dict[str, Any] = json.loads(answer.data)
            server: dict[str, Any] = said.get("server") or {}
            named = {"server_id": server.get("id"), "server_name": server.get("name")}
            found.append({**named, **(said.get("data") or {})})  # none: it has nothing of that account yet
            if enough(found):
                break
    except TimeoutError:
        if not found:
            raise
    finally:
        await subscription.unsubscribe()
    return found
