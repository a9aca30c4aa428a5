"""The calls that a node makes to the gateway: to register, to fetch its credential, to say that it goes and is back."""

import hashlib
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from weft_worker_agent.outbound.mesh.credential import Credential, parse
from weft_worker_agent.outbound.mesh.identity import NodeIdentity
from weft_worker_agent.outbound.mesh.mesh_clock import MeshClock
from weft_worker_agent.outbound.mesh.mesh_trust import MeshTrust, NotTheMesh, gateway_name, reason
from weft_worker_agent.outbound.mesh.sealed_copy import SealedCopy

if TYPE_CHECKING:
    import httpx

_TIMEOUT_S = 15.0
_MOST_AGAIN_S = 3600.0
_MAX_SENTENCE = 500
_LONGEST_AFTER_S = 120
BY_GATEWAY = "{gateway}"
"""In the address of NATS: the host by which this node reaches the gateway."""


class Refused(Exception):
    """The gateway says no, and would again: 400 or 401."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class NotNow(Exception):
    """No answer, or one that another try may change."""

    def __init__(self, sentence: str, status: int | None = None, after_s: float = 0.0) -> None:
        """`after_s`: how long the gateway asks to be left alone, in seconds."""
        super().__init__(sentence)
        self.status = status
        self.after_s = after_s


class UnknownNode(Exception):
    """The mesh doesn't know this node, or no longer: it must register."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """One gateway, by its URL."""

    url: str
    identity: NodeIdentity
    clock: MeshClock = field(default_factory=MeshClock)
    trust: MeshTrust | None = None
    """Where the mesh speaks TLS by its own authority; None: the gateway is believed as any server is."""

    async def register(self, body: dict[str, Any]) -> None:
        """Ask to join, signed with the node's key. Raises Refused, NotNow."""
        content = json.dumps(body).encode()
        nonce = str(int(self.clock.now()))
        signed = f"weft-register:{nonce}:{hashlib.sha256(content).hexdigest()}".encode()
        headers = {"weft-nonce": nonce, "weft-signature": self.identity.sign(signed)}
        response = await self._post("/api/node/register", content, headers)
        if response.status_code == 401 and "stale_nonce" in response.text:
            raise NotNow(_sentence(response))  # its answer told the time
        if response.status_code in (400, 401, 403, 422):
            raise Refused(response.status_code, _sentence(response))
        if not response.is_success:
            raise NotNow(_sentence(response), response.status_code, _after(response))

    async def credential(self) -> Credential | None:
        """Fetch the credential by a signed poll; None while an admin's approval is awaited.

        Raises UnknownNode, NotNow, BadCredential.
        """
        response = await self._say("/api/node/credential", self._signed("credential", str(int(self.clock.now()))))
        if response.status_code == 202:
            return None
        if response.status_code in (403, 404, 410):
            raise UnknownNode(_sentence(response))
        if not response.is_success:
            raise NotNow(_sentence(response), response.status_code, _after(response))
        found = parse(response.json(), time.time(), self.clock.ahead)
        return replace(found, nats_url=found.nats_url.replace(BY_GATEWAY, self._host))

    @property
    def _host(self) -> str:
        host = urlsplit(self.url).hostname or ""
        return f"[{host}]" if ":" in host else host

    async def drain(self, deadline_s: float) -> None:
        """Ask for this node's own drain. Raises Refused, UnknownNode, NotNow."""
        await self._said("drain", deadline_s=deadline_s)

    async def heartbeat(self, problem: str) -> None:
        """Say that this node lives, and what keeps it from the log. Raises Refused, UnknownNode, NotNow."""
        await self._said("heartbeat", problem=problem[:_MAX_SENTENCE])

    async def resume(self) -> None:
        """Lift this node's own drain. Raises Refused, UnknownNode, NotNow."""
        await self._said("resume")

    async def secret(self, name: str, have: int) -> SealedCopy | None:
        """Fetch a secret that is newer than the version `have`; None while there is nothing to fetch.

        Raises Refused (403, 404, 409: it can't be had as things stand), NotNow.
        """
        body = self._signed(f"secret:{name}", f"{self.clock.now():.3f}") | {"name": name, "have": have}
        response = await self._say("/api/node/secret", body)
        if response.status_code in (202, 429, 503):
            waits = "the registry has not laid it out yet" if response.status_code == 202 else _sentence(response)
            raise NotNow(waits, response.status_code, _after(response))
        if 400 <= response.status_code < 500:
            raise Refused(response.status_code, _sentence(response))
        if not response.is_success:
            raise NotNow(_sentence(response), response.status_code, _after(response))
        try:
            return SealedCopy.of(response.json())
        except (ValueError, KeyError, TypeError):
            raise NotNow("the gateway's answer is no secret") from None

    async def files_near(self, files: str) -> Any:
        """Whom this node asks for files that it needs, as the gateway's answer has it. Raises Refused (403: it needs
        none such by what the gateway has folded), NotNow."""
        signed = self._signed(f"files-near:{files}", f"{self.clock.now():.3f}")
        return await self._asked("/api/node/files/near", signed | {"files": files})

    async def files_may_go(self, files: str) -> bool:
        """Whether files that nothing here needs may go for want of room. Raises Refused (also by a gateway of an older
        release, which knows no such question, and by one that doesn't know this node yet), NotNow."""
        signed = self._signed(f"files-going:{files}", f"{self.clock.now():.3f}")
        answer = await self._asked("/api/node/files/going", signed | {"files": files})
        try:
            return answer["may_go"] is True
        except (KeyError, TypeError):
            raise NotNow("the gateway's answer is neither yes nor no") from None

    async def files_reader(self, files: str, words: Mapping[str, str]) -> float:
        """Ask whether a node may be given files, by its signed words. For how many seconds that holds.

        Raises Refused (it may not), NotNow."""
        signed = self._signed(f"files-reader:{files}", f"{self.clock.now():.3f}")
        answer = await self._asked("/api/node/files/reader", signed | {"files": files, "reader": dict(words)})
        try:
            return float(answer["good_for_s"])
        except (ValueError, KeyError, TypeError):
            raise NotNow("the gateway's answer is no yes") from None

    def signed(self, what: str) -> dict[str, Any]:
        """This node's words, `weft-<what>:<node>:<nonce>`, for somebody who relays them to a gateway."""
        return self._signed(what, f"{self.clock.now():.3f}")

    async def _asked(self, path: str, body: dict[str, Any]) -> Any:
        response = await self._say(path, body)
        if response.status_code in (400, 403, 404, 405, 410, 422, 423):
            raise Refused(response.status_code, _sentence(response))
        if not response.is_success:
            raise NotNow(_sentence(response), response.status_code, _after(response))
        try:
            return response.json()
        except ValueError:
            raise NotNow("the gateway's answer is no JSON") from None

    async def _said(self, what: str, **fields: float | str) -> None:
        body = self._signed(what, f"{self.clock.now():.3f}")
        response = await self._say(f"/api/node/{what}", body | fields)
        if response.status_code in (403, 404, 410):
            raise UnknownNode(_sentence(response))
        if response.status_code in (400, 401, 405, 409, 422):
            raise Refused(response.status_code, _sentence(response))
        if not response.is_success:
            raise NotNow(_sentence(response), response.status_code, _after(response))

    def _signed(self, what: str, nonce: str) -> dict[str, Any]:
        node = self.identity.node
        signature = self.identity.sign(f"weft-{what}:{node}:{nonce}".encode())
        return {"node": node, "nonce": nonce, "signature": signature}

    async def _say(self, path: str, body: dict[str, Any]) -> "httpx.Response":
        return await self._post(path, json.dumps(body).encode())

    async def _post(self, path: str, content: bytes, headers: Mapping[str, str] | None = None) -> "httpx.Response":
        import httpx  # only a node that joins or renews needs it, and it is heavy

        options: dict[str, Any] = {}
        named: dict[str, Any] = {}
        if self.trust is not None:
            options["verify"] = await self._verified(self.trust)
            named["sni_hostname"] = gateway_name()
        try:
            async with httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False, **options) as client:
                headers = {"content-type": "application/json", **(headers or {})}
                where = self.url.rstrip("/") + path
                response = await client.post(where, content=content, headers=headers, extensions=named)
                self.clock.heard(response.headers.get("date"))
                return response
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotNow(f"{self.url} does not answer: {reason(error)}") from None

    async def _verified(self, trust: MeshTrust) -> ssl.SSLContext:
        try:
            return await trust.context(self.url)
        except NotTheMesh as error:
            raise Refused(0, str(error)) from None
        except OSError as error:
            raise NotNow(f"{self.url} does not answer: {reason(error)}") from None


def _after(response: "httpx.Response") -> float:
    """Its `Retry-After` in seconds; 0 where it has none that is a number."""
    said = response.headers.get("retry-after", "")
    return float(min(int(said), _LONGEST_AFTER_S)) if said.isascii() and said.isdigit() else 0.0


def _sentence(response: "httpx.Response") -> str:
    """What an error answer says: the problem body's detail, else its first characters."""
    try:
        body: Any = response.json()
        text = body.get("detail") or body.get("reason") or body.get("title") or str(body)
    except (ValueError, AttributeError):
        text = response.text
    return f"{response.status_code}: {str(text)[:_MAX_SENTENCE]}"
