"""How a node comes by its credential: stored, fetched, or by joining first. Waits as long as it takes."""

import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential
from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.mesh import credential as stored
from weft_worker_agent.outbound.mesh.credential import BadCredential, Credential
from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused, UnknownNode

_log: Any = get_logger("weft.joining")
_FIRST_S, _LONGEST_S = 0.3, 10.0
_SAY_AGAIN_S = 30.0
T = TypeVar("T")


def _pause(state: RetryCallState) -> float:
    """Seconds before the next try: ever more, by chance, and no fewer than the gateway asks for.

    Whoever is asked to wait adds up to as much by chance: a thousand nodes that start at once don't come back at once.
    """
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.after_s if isinstance(error, NotNow) else 0.0
    own = wait_random_exponential(multiplier=_FIRST_S, max=_LONGEST_S)(state)
    return max(own, asked * random.uniform(1.0, 2.0))


class CannotJoin(Exception):
    """The mesh refuses this node, and would again; the message is a sentence for people."""


class _Pending(Exception):
    """An admin's approval is awaited."""


class Joining:
    """One node's way into the mesh. Every try is bounded; there are as many as it takes, ever slower."""

    def __init__(self, gateway: Gateway, state: Path, body: dict[str, Any], token: str | None) -> None:
        """`body` is what the node registers with, without the token."""
        self._gateway = gateway
        self._state = state
        self._body = body
        self._token = token
        self._certificate = gateway.trust.certificate if gateway.trust is not None else None
        self._said: tuple[str, float] = ("", 0.0)

    async def credential(self) -> Credential:
        """The stored credential if it is good and the node's addresses are those it registered with; else a
        fresh one. Raises CannotJoin."""
        good = stored.load(self._state)
        if good is not None and self._certificate is not None and not self._certificate.fits(good.certificate):
            good = None  # from before the mesh spoke TLS
        if good is not None and not self._changed():
            return good
        if self._changed():
            try:
                await self._register()
            except CannotJoin as refusal:
                if good is None:
                    raise
                _log.error("new addresses not registered: the old ones stay", reason=str(refusal))
                return good
        return await self.fresh()

    async def fresh(self) -> Credential:
        """Fetch a credential, registering again if the mesh doesn't know the node. Raises CannotJoin."""
        found = await self._patiently(self._fetch)
        with contextlib.suppress(OSError):
            if self._certificate is not None and found.certificate:
                self._certificate.store(found.certificate)
            stored.store(self._state, found)
        return found

    async def tell(self, problem: str) -> None:
        """Let people know over HTTP what keeps this node from the log. Once: whoever tries again tells again."""
        with contextlib.suppress(NotNow, Refused, UnknownNode):
            await self._gateway.heartbeat(" ".join(problem.split()))

    def _changed(self) -> bool:
        return stored.registered(self._state) != self._body

    async def _fetch(self) -> Credential:
        try:
            found = await self._gateway.credential()
        except Refused as refusal:
            raise CannotJoin(f"this node can't join {self._gateway.url}: {refusal}") from None
        except UnknownNode as error:
            _log.warning("the mesh does not know this node: it registers", reason=str(error))
            await self._register()
            raise _Pending("registered") from None
        if found is None:
            raise _Pending("waiting for an admin's approval")
        if self._certificate is not None and not self._certificate.fits(found.certificate):
            raise _Pending("waiting for the certificate of this node's key")
        return found

    async def _register(self) -> None:
        if not self._token:
            raise CannotJoin(
                "this node has not joined and has no registration token: set WEFT_JOIN_TOKEN to one of the mesh's"
            )
        token = self._token

        async def once() -> None:
            try:
                await self._gateway.register({"token": token, **self._body})
            except Refused as refusal:
                what = "WEFT_JOIN_TOKEN is not accepted" if refusal.status == 401 else "the gateway refuses it"
                raise CannotJoin(f"this node can't join {self._gateway.url}: {what} ({refusal})") from None

        await self._patiently(once)
        with contextlib.suppress(OSError):
            stored.store_registered(self._state, self._body)
        _log.info("registered", node=self._gateway.identity.node, gateway=self._gateway.url)

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type((NotNow, BadCredential, _Pending)),
            wait=_pause,
            before_sleep=self._say,
            reraise=True,
        ):
            with attempt:
                return await call()
        raise AssertionError("a retry without an end has ended")

    def _say(self, state: RetryCallState) -> None:
        """Say what is waited for: at once, then every half a minute."""
        error = state.outcome.exception() if state.outcome is not None else None
        text = str(error)
        if text == self._said[0] and time.monotonic() - self._said[1] < _SAY_AGAIN_S:
            return
        self._said = (text, time.monotonic())
        if isinstance(error, NotNow) and error.status == 409:
            _log.error("the mesh does not take this node so: another name may do, or an admin's word", reason=text)
        elif isinstance(error, _Pending):
            _log.info("not in the mesh yet", reason=text)
        else:
            _log.warning("the gateway is not reached", reason=text)
