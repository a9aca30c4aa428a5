"""Credentials of approved nodes: the durable that they read by, and the token that their next poll fetches."""

import asyncio
import json
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from weft_contracts import certificates, permissions
from weft_contracts.ids import NodeId
from weft_contracts.topology import worker_durable
from weft_eventlog import LogUnavailable, apply_durable
from weft_eventlog.credentials import put_credential
from weft_identity.mesh_exports import worker_grants
from weft_identity.trust import Trust
from weft_runtime.leadership import Leadership
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

from weft_registry.domain.state import RegistryState
from weft_registry.outbound.revocations import Revocations

if TYPE_CHECKING:
    from weft_identity.authority import Authority

_log: Any = get_logger("weft.registry.credentials")
_LOOK = 0.1
_PAUSE = 1.0


class Issuer:
    """Lays out a credential for each approved node, once, and again at half of its life; shuts others out.

    Both in one loop: no token is made for a node behind its revocation.
    Cost: one signature (0.4 ms), one consumer and one write per node and half-life.
    """

    def __init__(
        self,
        runtime: Runtime,
        state: RegistryState,
        leadership: Leadership,
        trust: Trust,
        revocations: Revocations,
        flooding: Callable[[], Collection[NodeId]],
        *,
        url: str,
        lasts: float,
        authority: "Authority | None" = None,
    ) -> None:
        """`flooding`: nodes that get none, though the log doesn't say so yet. `authority`: makes the nodes'
        certificates; None: the mesh speaks plainly."""
        self._runtime = runtime
        self._state = state
        self._leadership = leadership
        self._trust = trust
        self._url = url
        self._lasts = lasts
        self._revocations = revocations
        self._flooding = flooding
        self._authority = authority
        self._issued: dict[NodeId, tuple[float, str]] = {}
        """When each node's credential was laid out, on the monotonic clock, and for which key its certificate is."""

    async def run(self) -> None:
        """Lay out what is missing, for ever."""
        while True:
            due: list[NodeId] = []
            if self._leadership.held:
                await self._revocations.settle()
                due = self._due()
            for node in due:
                try:
                    await self._revocations.settle()
                    await self._issue(node)
                except LogUnavailable as error:
                    _log.warning("credential not laid out", node=node, error=str(error))
                    await asyncio.sleep(_PAUSE)
                    break
            await asyncio.sleep(_LOOK if not due else 0)

    def _due(self) -> list[NodeId]:
        now = time.monotonic()
        shut_out = {*self._state.cut_offs, *self._flooding()}
        for node in shut_out:
            self._issued.pop(node, None)
        return [
            node.id
            for node in self._state.fleet.nodes.values()
            if node.approved and not node.removed and node.id not in shut_out and self._is_due(node.id, now)
        ]

    def _is_due(self, node: NodeId, now: float) -> bool:
        issued = self._issued.get(node)
        if issued is None:
            return self._revocations.may_mint(node)
        return now - issued[0] > self._lasts / 2 or issued[1] != self._key(node)

    def _key(self, node: NodeId) -> str:
        return self._state.certificate_keys.get(node, "") if self._authority is not None else ""

    async def _issue(self, node: NodeId) -> None:
        await apply_durable(self._runtime.client, worker_durable(node))
        view = self._state.fleet.nodes[node]
        if view.removed or view.cut_off is not None or node in self._flooding():
            return
        token = self._trust.worker_token(
            view.public_key, node, worker_grants(permissions.worker(node)), expires_in_s=int(self._lasts)
        )
        key = self._key(node)
        credential = {"jwt": token, "nats_url": self._url, "expires_at": time.time() + self._lasts}
        if self._authority is not None and key:
            role = certificates.node_role(node)
            credential["certificate"] = self._authority.chain(certificates.check_key(key), role, self._lasts)
        await put_credential(self._runtime.client, node, json.dumps(credential).encode())
        self._issued[node] = time.monotonic(), key
        _log.info("credential laid out", node=node, lasts_s=self._lasts)
