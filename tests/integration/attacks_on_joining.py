"""Attacks on who is who: connecting, polling for a credential, registering, waiting for approval."""

import time
from typing import Any

from weft_testing.bare_node import BareNode

from .attack import Attack, Foe


async def _second(foe: Foe) -> None:
    client = await foe.node.connect(foe.shown)
    answer = await client.request(foe.own("loading", "m-none-1"), b"[]", timeout=30)
    assert b"seq" in answer.data
    await client.close()


async def _stolen(foe: Foe) -> None:
    thief = BareNode(foe.mesh.url, "thief", foe.http)
    await foe.is_shut_out(foe.shown, thief)


async def _polls_for_another(foe: Foe) -> None:
    await foe.asks(401, foe.node.poll(node=foe.victim))


async def _old_poll(foe: Foe) -> None:
    await foe.asks(401, foe.node.poll(nonce=str(int(time.time()) - 3600)))


async def _takes_name(foe: Foe) -> None:
    other = BareNode(foe.mesh.url, "worker-1", foe.http)
    await foe.asks(409, other.register(foe.pending_token))


async def _moves_another(foe: Foe) -> None:
    key = next(node for node in foe.mesh.facts("node", "joined") if node["key"] == foe.victim)["fact"]["public_key"]
    body = {"token": foe.pending_token, "name": "worker-1", "public_key": key}
    addresses = {"host": "10.9.9.9", "http_port": 1}
    await foe.asks(401, foe.node.send_registration(body | {"addresses": addresses}))


async def _sends_again(foe: Foe) -> None:
    body = {"token": foe.pending_token, "name": "foe", "public_key": foe.node.key.public}
    said: dict[str, Any] = {**body, "labels": {"camp": "foe"}, "addresses": {"host": "127.0.0.1", "http_port": 0}}
    now = time.time()
    await foe.asks(202, foe.node.send_registration(said, nonce=f"{now:.6f}"))
    for sent in (now, now - 10):
        await foe.asks(401, foe.node.send_registration(said, nonce=f"{sent:.6f}"))


async def _nearly_takes_name(foe: Foe) -> None:
    await foe.asks(409, BareNode(foe.mesh.url, "Worker-1", foe.http).register(foe.pending_token))


async def _takes_id_for_name(foe: Foe) -> None:
    for name in (foe.victim, foe.victim.upper()):
        await foe.asks(400, BareNode(foe.mesh.url, name, foe.http).register(foe.pending_token))


async def _claims_automatic_label(foe: Foe) -> None:
    for label in ("node.name", "engine.llama.cpp", "gpu.vendor"):
        await foe.asks(400, foe.node.register(foe.pending_token, labels={"camp": "foe", label: "worker-1"}))


async def _crowds(foe: Foe) -> None:
    for number in range(6):
        answer = await BareNode(foe.mesh.url, f"crowd-{number}", foe.http).register(foe.crowd_token)
        assert answer.status_code == (202 if number < foe.CROWD else 429), f"{number}: {answer.text}"
        assert number < foe.CROWD or 1 <= int(answer.headers["retry-after"]) <= 60


async def _bears_launchers_token(foe: Foe) -> None:
    secret = (foe.mesh.state / "join-token").read_text().strip()
    await foe.asks(401, BareNode(foe.mesh.url, "guest", foe.http).register(secret))


async def _pending(foe: Foe) -> None:
    other = BareNode(foe.mesh.url, "waits", foe.http)
    await foe.asks(202, other.register(foe.pending_token))
    await foe.asks(202, other.poll())
    await foe.is_shut_out(foe.shown, other)


async def _asks_for_a_strange_secret(foe: Foe) -> None:
    await foe.asks(403, foe.node.secret("cloud"))


async def _asks_for_anothers_secret(foe: Foe) -> None:
    await foe.asks(401, foe.node.secret("cloud", node=foe.victim))


async def _asks_by_another_signature(foe: Foe) -> None:
    await foe.asks(401, foe.node.secret("cloud", signed_for="other"))
    await foe.asks(401, foe.node.secret("cloud", nonce=f"{time.time() - 3600:.3f}"))


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "Connects a second time with the same credential.",
        "It is the same node, with the same rights and no more.",
        _second,
    ),
    Attack(
        "Connects with a credential whose key it doesn't have.",
        "The server lets nobody in who can't sign its nonce with the credential's key.",
        _stolen,
    ),
    Attack(
        "Polls for another node's credential.",
        "401: the poll is signed with the node's key, and this is not it.",
        _polls_for_another,
    ),
    Attack("Polls again with an old nonce.", "401: a nonce is good for five minutes.", _old_poll),
    Attack("Registers under another node's name.", "409: a name is one node's until an admin removes it.", _takes_name),
    Attack(
        "Registers another node's public key with addresses of its own, to be sent its requests.",
        "401: a registration is signed with the key that it names.",
        _moves_another,
    ),
    Attack(
        "Sends a registration again, and one from before it, to have an old address back.",
        "401: a registration counts once, and none that was signed before the last one.",
        _sends_again,
        before="its old address, for five minutes after it was sent",
    ),
    Attack(
        "Registers under a name that differs from another's by the case of letters alone.",
        "409: names are told apart by more than that.",
        _nearly_takes_name,
        before="the name",
    ),
    Attack(
        "Registers under another node's id for a name.",
        "400: a name is not written as an id of a node.",
        _takes_id_for_name,
        before="the name, under which commands that named the other by its id would have shown two",
    ),
    Attack(
        "Gives itself labels that selectors take for the machine's own.",
        "400: what follows from the machine only the mesh says, or an admin.",
        _claims_automatic_label,
        before="replicas that were meant for other hardware",
    ),
    Attack(
        "Registers one new key after another with a token that asks for approval.",
        "429, with when to come again: a token lets so many wait at once, and so many come in a minute.",
        _crowds,
        before="200 nodes in 6 s, facts of which stay for ever",
    ),
    Attack(
        "Registers a key of its own with the launcher's token, which approves, read from its disk.",
        "401: that token serves the keys of the launcher's own workers, and no other.",
        _bears_launchers_token,
        before="a place in the mesh, approved",
    ),
    Attack(
        "Waits for approval and tries all the same.",
        "It is `pending`: its polls answer 202 without a credential, and another's opens nothing.",
        _pending,
    ),
    Attack(
        "Asks for a secret that nothing it is to run names.",
        "403: a secret goes to nodes whose assignments name it, sealed to each.",
        _asks_for_a_strange_secret,
    ),
    Attack(
        "Asks for a secret in another node's name.",
        "401: the asking is signed with the node's key, and this is not it.",
        _asks_for_anothers_secret,
    ),
    Attack(
        "Asks for a secret by its signature for another one, or by an old one.",
        "401: a signature is for one name, and good for five minutes.",
        _asks_by_another_signature,
    ),
)
