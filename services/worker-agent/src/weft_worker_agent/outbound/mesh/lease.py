"""The node's sign of life, every 2 seconds, from a thread of its own with its own loop and connection.

It shares nothing with the agent's work: a loop that is busy for seconds (a large fold, a hash, a slow disk)
must not cost the node its health, and Python hands the processor over between threads every few milliseconds.
A process of its own would be safer still and cost 30 MB a node. The one danger of the thread, a lease that
outlives an agent that hangs for good, is met by watching its pulse: without one for a minute, the process ends
and its supervisor starts it anew; the engines run on.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from weft_contracts.signals import Lease
from weft_contracts.subjects import node_lease
from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.mesh import connection
from weft_worker_agent.outbound.mesh.credential import Credential
from weft_worker_agent.outbound.mesh.identity import NodeIdentity

EVERY_S = 2.0
PULSE_S = 60.0
HUNG = 70
"""Exit status of an agent whose loop stood still."""
_STEP_S = 0.5
_log: Any = get_logger("weft.lease")


class LeaseThread(threading.Thread):
    """Renews until `stop`. All methods may be called from any thread."""

    def __init__(
        self,
        identity: NodeIdentity,
        credential: Credential,
        holder: str,
        *,
        hang: Callable[[], None] = lambda: os._exit(HUNG),
    ) -> None:
        """`holder` is new at each start of the agent; `hang` is called when the agent's pulse has stopped."""
        super().__init__(name="lease", daemon=True)
        self._identity = identity
        self._credential = credential
        self._holder = holder
        self._hang = hang
        self._stopped = threading.Event()
        self._pulse = time.monotonic()
        self._sent: float | None = None

    @property
    def since(self) -> float | None:
        """Seconds since the last renewal was sent; None: none was."""
        return None if self._sent is None else time.monotonic() - self._sent

    @property
    def expires_at(self) -> float:
        """Of the credential that is shown, in seconds since the epoch."""
        return self._credential.expires_at

    def beat(self) -> None:
        """The agent's loop turns."""
        self._pulse = time.monotonic()

    def show(self, credential: Credential) -> None:
        """Go on with a newer credential."""
        self._credential = credential

    def stop(self) -> None:
        """Renew no more; the thread ends within a second."""
        self._stopped.set()

    def run(self) -> None:
        asyncio.run(self._renew())

    async def _renew(self) -> None:
        client: Any = None
        shown: Credential | None = None
        payload = Lease(holder=self._holder).model_dump_json().encode()
        subject = node_lease(self._identity.node)
        due = time.monotonic()
        while not self._stopped.is_set():
            if client is None or client.is_closed or shown is not self._credential:
                if client is not None:
                    await connection.close(client)
                shown = self._credential
                client = await self._connected(shown)
            if client is not None and client.is_connected:
                # While NATS is away nothing is published: a lease that arrives late would be a lie.
                await client.publish(subject, payload)
                self._sent = time.monotonic()
            if time.monotonic() - self._pulse > PULSE_S:
                _log.error("the agent's loop stands still: it ends, to be started anew", for_s=PULSE_S)
                self._hang()
            due = max(due + EVERY_S, time.monotonic())
            await self._sleep_until(due)
        if client is not None:
            await connection.close(client)

    async def _sleep_until(self, due: float) -> None:
        """In short steps: the stop comes from another thread."""
        for _ in range(int(EVERY_S / _STEP_S)):
            left = due - time.monotonic()
            if left <= 0 or self._stopped.is_set():
                return
            await asyncio.sleep(min(left, _STEP_S))

    async def _connected(self, credential: Credential) -> Any:
        try:
            return await connection.opened(self._identity, credential, "lease")
        except Exception as error:  # only the log and the runtime know NATS's errors
            _log.info("no connection for the lease yet", error=repr(error))
            return None
