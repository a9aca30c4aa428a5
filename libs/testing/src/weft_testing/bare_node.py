"""A node without a machine: it joins as `weft worker` does, and then does what its test or bench wants.

Its own key, the real HTTP routes, a real credential, a real connection. It starts no engine.
"""

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from nats.aio.client import Client
from weft_contracts import permissions
from weft_contracts.codec import encode
from weft_contracts.commit import Cause, Commit
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.values import Backend, Device, Hardware
from weft_contracts.ids import CorrelationId, NodeId, node_id_of
from weft_contracts.signals import Lease
from weft_contracts.subjects import machine, node_lease
from weft_eventlog.one_socket import connected
from weft_identity.nkey import KeyPair, Role

LEASE = Lease(holder="bare").model_dump_json().encode()
GIB = 1 << 30


class BareNode:
    """One key. Nothing happens by itself: each step is a call."""

    def __init__(self, url: str, name: str, http: httpx.AsyncClient, key: KeyPair | None = None) -> None:
        """`url` is the address of the gateway; `http` may be shared by many; `key` is that of a node there is."""
        self.url = url
        self.name = name
        self.key = key or KeyPair.new(Role.USER)
        self.id: NodeId = node_id_of(self.key.public)
        self.http = http
        self.errors: list[str] = []
        """What the server told its connections."""

    async def register(self, token: str, **fields: Any) -> httpx.Response:
        """Ask to join, once."""
        addresses = {"host": "127.0.0.1", "http_port": 0}
        body = {"token": token, "name": self.name, "public_key": self.key.public, "addresses": addresses}
        return await self.send_registration(body | fields)

    async def send_registration(self, body: Mapping[str, Any], nonce: str = "") -> httpx.Response:
        """A registration as it stands, signed with this node's key."""
        content, nonce = json.dumps(body).encode(), nonce or f"{time.time():.6f}"
        signature = self.key.sign(f"weft-register:{nonce}:{hashlib.sha256(content).hexdigest()}".encode())
        headers = {"weft-nonce": nonce, "weft-signature": base64.b64encode(signature).decode()}
        headers["content-type"] = "application/json"
        return await self.http.post(f"{self.url}/api/node/register", content=content, headers=headers)

    async def poll(self, **fields: str) -> httpx.Response:
        """Ask for the credential, once; `fields` stand in for what it would say."""
        nonce = fields.get("nonce", str(int(time.time())))
        signed = self.key.sign(f"weft-credential:{self.id}:{nonce}".encode())
        body = {"node": self.id, "nonce": nonce, "signature": base64.b64encode(signed).decode()}
        return await self.http.post(f"{self.url}/api/node/credential", json=body | fields)

    async def secret(self, name: str, *, signed_for: str | None = None, **fields: Any) -> httpx.Response:
        """Ask for a secret, once; `signed_for` is the name that is signed instead, `fields` stand in for what it would
        say."""
        nonce = fields.get("nonce", f"{time.time():.3f}")
        signed = self.key.sign(f"weft-secret:{signed_for or name}:{self.id}:{nonce}".encode())
        body = {"node": self.id, "nonce": nonce, "signature": base64.b64encode(signed).decode(), "name": name}
        return await self.http.post(f"{self.url}/api/node/secret", json=body | fields)

    async def credential(self, timeout: float = 60.0) -> dict[str, Any]:
        """Poll until there is one. Raises TimeoutError; AssertionError where the gateway refuses."""
        async with asyncio.timeout(timeout):
            while True:
                answer = await self.poll()
                if answer.status_code == 200:
                    return answer.json()
                assert answer.status_code in (202, 404, 429), f"{answer.status_code}: {answer.text}"
                await asyncio.sleep(0.2)

    async def connect(self, credential: Mapping[str, Any], **options: Any) -> Client:
        """Connect to the log with a credential."""

        async def note(error: Exception) -> None:
            self.errors.append(str(error) or repr(error))

        def sign(nonce: str) -> bytes:
            return base64.b64encode(self.key.sign(nonce.encode()))

        settings: dict[str, Any] = {
            "user_jwt_cb": str(credential["jwt"]).encode,
            "signature_cb": sign,
            "inbox_prefix": permissions.worker(self.id).inbox.encode(),
            "error_cb": note,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.25,
            "name": self.id,
        }
        return await connected(str(credential["nats_url"]), **settings | options)

    async def lease(self, client: Client) -> None:
        """One sign of life."""
        await client.publish(node_lease(self.id), LEASE)

    async def report(self, client: Client, memory: int = 8 * GIB) -> None:
        """Say what it has: one simulated device of so many bytes. Raises AssertionError where the log refuses."""
        hardware = Hardware(cpus=1, memory=memory, devices=(simulated(memory),))
        engine = Backend(engine="simulated", version="1", vendors=("nvidia", "cpu"))
        said = Reported(hardware=hardware, backends=(engine,), builtins=(), agent_version="bare")
        commit = Commit(machine(self.id), (said,), None, Cause(CorrelationId(f"machine-{self.id}")))
        answer = await client.request(machine(self.id).subject(said.type), encode(commit), timeout=30)
        assert b'"seq"' in answer.data, answer.data


def simulated(memory: int) -> Device:
    """A device for the simulated engine only."""
    return Device(index=0, vendor="nvidia", name="simulated", memory=memory, simulated=True)


async def appended(client: Client, subject: str, body: bytes, headers: Mapping[str, str] | None = None) -> Any:
    """What the log answers to an append."""
    return json.loads((await client.request(subject, body, timeout=30, headers=dict(headers or {}) or None)).data)


async def close_all(clients: Sequence[Client]) -> None:
    """Close connections, also those that were cut off."""
    await asyncio.gather(*(client.close() for client in clients), return_exceptions=True)
