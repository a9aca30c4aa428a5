"""Tokens that do not open: expired, forged, stolen, none."""

import base64
import json
import time

import pytest
from nats.errors import Error as NatsError
from weft_contracts import permissions
from weft_identity.claims import mint_user
from weft_identity.grants import FULL
from weft_identity.mesh_exports import worker_grants
from weft_identity.nkey import KeyPair, Role
from weft_identity.trust import Account
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until

from .permission_world import ONE


async def refused(mesh: MeshServer, token: str, key: KeyPair) -> str:
    """Why the server doesn't let this token in."""
    with pytest.raises(NatsError) as refusal:
        await mesh.connect(token, key, "_INBOX_x", {"allow_reconnect": False, "max_reconnect_attempts": 1})
    return str(refusal.value)


async def test_an_expired_token_does_not_open(mesh: MeshServer) -> None:
    key = KeyPair.new(Role.USER)
    claims = worker_grants(permissions.worker(ONE))
    signer, account = mesh.trust.worker_signing, mesh.trust.public(Account.WORKERS)
    hour_ago = int(time.time()) - 3600
    token = mint_user(key.public, ONE, claims, signer=signer, account=account, expires_in_s=60, now=hour_ago)
    assert "Authorization Violation" in await refused(mesh, token, key)


async def test_a_token_that_expires_ends_the_connection(mesh: MeshServer) -> None:
    key = KeyPair.new(Role.USER)
    token = mesh.trust.worker_token(key.public, ONE, worker_grants(permissions.worker(ONE)), expires_in_s=5)
    worker = await mesh.connect(token, key, "_INBOX_n-one", {"allow_reconnect": False})

    async def cut() -> bool:
        return worker.is_closed

    await until(cut)


@pytest.mark.parametrize("account", [Account.WORKERS, Account.MESH])
async def test_a_token_signed_by_another_key_does_not_open(mesh: MeshServer, account: Account) -> None:
    key, stranger = KeyPair.new(Role.USER), KeyPair.new(Role.ACCOUNT)
    token = mint_user(key.public, "registry", FULL, signer=stranger, account=mesh.trust.public(account))
    assert "Authorization Violation" in await refused(mesh, token, key)


async def test_the_key_that_signs_workers_opens_no_other_account(mesh: MeshServer) -> None:
    """Who steals the registry's signing key gets workers, never a service."""
    key = KeyPair.new(Role.USER)
    signer = mesh.trust.worker_signing
    token = mint_user(key.public, "registry", FULL, signer=signer, account=mesh.trust.public(Account.MESH))
    assert "Authorization Violation" in await refused(mesh, token, key)


async def test_a_stolen_token_does_not_open_without_its_key(mesh: MeshServer) -> None:
    key = KeyPair.new(Role.USER)
    token = mesh.trust.worker_token(key.public, ONE, worker_grants(permissions.worker(ONE)))
    assert "Authorization Violation" in await refused(mesh, token, KeyPair.new(Role.USER))


async def test_a_token_that_was_changed_does_not_open(mesh: MeshServer) -> None:
    key = KeyPair.new(Role.USER)
    head, body, signature = mesh.trust.worker_token(key.public, ONE, worker_grants(permissions.worker(ONE))).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    claims["nats"]["pub"]["allow"] = [">"]
    forged = base64.urlsafe_b64encode(json.dumps(claims, separators=(",", ":")).encode()).decode().rstrip("=")
    assert "Authorization Violation" in await refused(mesh, f"{head}.{forged}.{signature}", key)


async def test_without_a_token_nothing_opens(mesh: MeshServer) -> None:
    with pytest.raises(NatsError, match="Authorization Violation"):
        await mesh.connect("", KeyPair.new(Role.USER), "_INBOX_x", {"allow_reconnect": False})
