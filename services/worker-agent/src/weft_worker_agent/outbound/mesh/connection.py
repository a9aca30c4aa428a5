"""This node's connections to the log: how each is opened with its credential, and closed."""

import asyncio
from typing import Any

from weft_contracts.permissions import worker
from weft_runtime.connection import connect
from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.mesh.credential import Credential
from weft_worker_agent.outbound.mesh.identity import NodeIdentity

_CONNECT_S = 10.0
_CLOSE_S = 2.0
_log: Any = get_logger("weft.connection")


async def opened(identity: NodeIdentity, credential: Credential, purpose: str = "") -> Any:
    """A connection as this node, within 10 s. `purpose` tells one beside the main one apart.

    Raises what the runtime and NATS raise, and TimeoutError.
    """
    node = identity.node
    inbox = worker(node).inbox
    async with asyncio.timeout(_CONNECT_S):
        return await connect(
            credential.nats_url,
            jwt=credential.jwt,
            seed=identity.seed,
            inbox=f"{inbox}.{purpose}" if purpose else inbox,
            name=f"{node} {purpose}" if purpose else node,
            tls=credential.nats_tls,
        )


async def close(client: Any) -> None:
    """Close within 2 s; what goes wrong is only logged."""
    try:
        async with asyncio.timeout(_CLOSE_S):
            await client.close()
    except Exception as error:  # it is given up anyway
        _log.debug("closing", error=repr(error))
