"""The connection with one endpoint: a session that is opened on first use, may be lost without a word, and is reopened
while the log still lists the replica as ready."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.client_errors import SessionError, SessionLost, SessionRefused
from weft_dataplane.session_client import SessionClient, make_hello
from weft_dataplane.tls import Certificates, names_node
from weft_runtime.logs import get_logger

from weft_gateway.domain.routing.endpoint_state import EndpointState

_log: Any = get_logger("weft.gateway.sessions")
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0
_FINAL = frozenset(
    {
        pb.REFUSAL_REASON_VERSION,
        pb.REFUSAL_REASON_WRONG_REPLICA,
        pb.REFUSAL_REASON_WRONG_INCARNATION,
        pb.REFUSAL_REASON_WRONG_REVISION,
        pb.REFUSAL_REASON_RETIRING,
    }
)
"""Refusals that another try can't change: only a newer ready event does."""


class EndpointConnection:
    """An endpoint's state and its session. `listed` says whether the log still names the endpoint's run as ready;
    `on_readmitted` is told when an ejected endpoint answers again."""

    def __init__(
        self,
        state: EndpointState,
        gateway: str,
        listed: Callable[[EndpointState], bool],
        on_readmitted: Callable[[EndpointState], None],
        certificates: Certificates | None = None,
    ) -> None:
        self._certificates = certificates
        self.state = state
        self.session: SessionClient | None = None
        self._gateway = gateway
        self._listed = listed
        self._on_readmitted = on_readmitted
        self._opening: asyncio.Task[SessionClient] | None = None
        self._reopening: asyncio.Task[None] | None = None

    async def open(self, timeout: float) -> SessionClient:
        """The open session; those who ask at once share one try. Raises SessionError, and ejects the replica."""
        if self.session is not None:
            return self.session
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(timeout))
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    def take_load(self) -> None:
        """Note the engine's load from the last frame."""
        if self.session is not None:
            load = self.session.load
            self.state.engine_load = load.running + load.waiting

    async def close(self, why: str) -> None:
        """End the session and every try to get one."""
        for task in (self._opening, self._reopening):
            if task is not None:
                task.cancel()
        session, self.session = self.session, None
        if session is not None:
            await session.close(why)

    async def _open(self, timeout: float) -> SessionClient:
        endpoint = self.state.endpoint
        hello = make_hello(endpoint.replica, endpoint.incarnation, endpoint.digest, self._gateway)
        credentials, names = None, None
        if self._certificates is not None:
            try:
                credentials, names = self._certificates.channel(), names_node(endpoint.node)
            except OSError as error:
                raise SessionLost(f"this gateway's certificate can't be read: {error}") from None
        session = await SessionClient.open(
            endpoint.address, hello, credentials=credentials, names=names, timeout=timeout
        )
        session.closed.add_done_callback(lambda closed: self._lost(session, closed))
        self.session = session
        self.take_load()
        self.state.ejected = None
        return session

    def _opened(self, task: "asyncio.Task[SessionClient]") -> None:
        self._opening = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._eject(error)

    def _lost(self, session: SessionClient, closed: "asyncio.Future[str]") -> None:
        if self.session is session:
            self.session = None
            self._eject(SessionLost(closed.result()))
            asyncio.get_running_loop().create_task(session.close())

    def _eject(self, error: BaseException) -> None:
        """Stop using the replica until it answers again, or until a newer run of it is ready."""
        endpoint = self.state.endpoint
        self.state.ejected = str(error)
        self.state.engine_load = 0
        final = isinstance(error, SessionRefused) and error.reason in _FINAL
        _log.info("replica ejected", replica=endpoint.replica, node=endpoint.node, why=str(error), final=final)
        if not final and self._reopening is None:
            self._reopening = asyncio.create_task(self._reopen())

    async def _reopen(self) -> None:
        """Try again, ever more slowly, for as long as the log lists this run."""
        pause = _FIRST_PAUSE
        try:
            while self.session is None and self._listed(self.state):
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))
                pause = min(pause * 2, _LONGEST_PAUSE)
                try:
                    await self._open(timeout=5.0)
                except SessionRefused as error:
                    self.state.ejected = str(error)
                    if error.reason in _FINAL:
                        return
                except SessionError as error:
                    self.state.ejected = str(error)
                else:
                    _log.info("replica answers again", replica=self.state.endpoint.replica)
                    self._on_readmitted(self.state)
        finally:
            self._reopening = None
