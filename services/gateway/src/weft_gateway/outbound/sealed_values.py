"""The gateway's part of the bucket of secrets: what admins set goes in sealed, copies for nodes come out sealed."""

import secrets as chance

from weft_contracts import secrets
from weft_contracts.ids import NodeId
from weft_eventlog import LogUnavailable
from weft_eventlog.sealed_secrets import get_sealed, put_sealed
from weft_runtime.service import Runtime

from weft_gateway.domain.refused import Refused
from weft_gateway.outbound.changes import away


class SealedValues:
    """Every call raises Refused, 503, while the log's server is away."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client

    async def put(self, name: str, value: bytes) -> str:
        """Seal a value to the registry's key and lay it out; under which id it lies. Raises Refused."""
        from weft_identity import sealing

        try:
            key = await get_sealed(self._client, secrets.KEY) if self._client.is_connected else None
            if key is None:
                raise _no_key() if self._client.is_connected else away()
            id = chance.token_hex(16)
            await put_sealed(
                self._client, secrets.sealed_key(id), sealing.seal(value, key, secrets.bound_to_name(name))
            )
        except LogUnavailable:
            raise away() from None
        return id

    async def copy(self, node: NodeId, name: str, version: int) -> bytes | None:
        """A node's copy of a secret; None while the registry laid none out. Raises Refused."""
        if not self._client.is_connected:
            raise away()
        try:
            return await get_sealed(self._client, secrets.copy_key(node, name, version))
        except LogUnavailable:
            raise away() from None


def _no_key() -> Refused:
    return Refused(
        503,
        "The registry has shown no key yet to which a secret could be sealed; try again soon.",
        code="no_sealing_key",
        headers={"retry-after": "2"},
    )
