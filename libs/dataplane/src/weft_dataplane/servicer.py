"""The engine's side of the data plane: sessions for gateways, values beside them, a watch for the agent."""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc
import grpc.aio
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.gen import session_pb2_grpc as pb_grpc

from weft_dataplane.engine import Engine
from weft_dataplane.engine_session import EngineSession, load_frame
from weft_dataplane.handshake import common_version, refuse
from weft_dataplane.host_life import HostLife
from weft_dataplane.limits import HANDSHAKE_S, IDLE_FRAME_S, server_options
from weft_dataplane.tls import Admission
from weft_dataplane.values import ValueRefused, ValueStore, chunks_of

BEAT_S: Final = 0.25
MAX_SESSIONS: Final = 256
MAX_WATCHES: Final = 16
MAX_PUT_S: Final = 60.0

log = logging.getLogger("weft.dataplane")

SessionContext = grpc.aio.ServicerContext[pb.ClientFrame, pb.EngineFrame]


class EngineServicer(pb_grpc.EngineServicer):
    """Serves one replica. Before an engine is attached and `life` is ready, sessions are refused by name."""

    def __init__(self, life: HostLife, values: ValueStore | None = None, admission: Admission | None = None) -> None:
        """`admission`: which callers are let in, by certificate; None: all that reach the port."""
        self.life = life
        self._admission = admission
        self._values = values or ValueStore()
        self._engine: Engine | None = None
        self._sessions: dict[EngineSession, asyncio.Task[None]] = {}

    def attach(self, engine: Engine) -> None:
        """From now on this engine answers. The caller moves `life` to ready."""
        self._engine = engine

    @property
    def running(self) -> int:
        """Requests that have not had their last output written, in all sessions."""
        return sum(session.running for session in self._sessions)

    def give_up(self, sentence: str, fault: pb.Fault.ValueType = pb.FAULT_RETIRING) -> None:
        """End all that runs with a word; `running` falls as it is written. See EngineSession."""
        for session in list(self._sessions):
            session.give_up(sentence, fault)

    async def beat(self) -> None:
        """Send heartbeats on idle sessions, and give up sessions whose gateway doesn't read. Runs until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(BEAT_S)
            now = loop.time()
            for session, task in list(self._sessions.items()):
                why = session.beat(now)
                if why is not None:
                    log.warning("session given up", extra={"gateway": session.gateway, "why": why})
                    task.cancel()

    async def Session(  # type: ignore[override]
        self, request_iterator: AsyncIterator[pb.ClientFrame], context: SessionContext
    ) -> None:
        """One gateway's session, from its Hello until either end is gone.

        PERMISSION_DENIED for a caller that is no gateway.
        """
        await self._admit(context)
        frames = aiter(request_iterator)
        hello = await self._hello(frames)
        if isinstance(hello, pb.Refusal):
            await context.write(pb.EngineFrame(refusal=hello))
            return
        engine = self._engine
        assert engine is not None  # a replica is ready only with its engine
        facts = engine.facts
        await context.write(
            pb.EngineFrame(
                welcome=pb.Welcome(
                    version=common_version(hello),
                    engine=facts.name,
                    engine_version=facts.version,
                    context_tokens=facts.context_tokens,
                    concurrency=facts.concurrency,
                    load=load_frame(engine.load()),
                )
            )
        )
        session = EngineSession(engine, self.life, self._values, hello.gateway)
        log.info("session opened", extra={"gateway": hello.gateway, "peer": context.peer()})
        writer = asyncio.create_task(session.write(context.write), name=f"session-{hello.gateway}")
        reader = asyncio.create_task(session.read(frames), name=f"session-{hello.gateway}-reader")
        self._sessions[session] = writer
        try:
            await asyncio.wait((writer, reader), return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._sessions[session]
            session.end()
            for task in (writer, reader):
                task.cancel()
            await asyncio.gather(writer, reader, return_exceptions=True)
            log.info("session closed", extra={"gateway": hello.gateway})
        if not reader.cancelled() and reader.exception() is None and (refusal := reader.result()) is not None:
            await context.write(pb.EngineFrame(refusal=refusal))

    async def Put(  # type: ignore[override]
        self,
        request_iterator: AsyncIterator[pb.Chunk],
        context: grpc.aio.ServicerContext[pb.Chunk, pb.Handle],
    ) -> pb.Handle:
        """Takes one large value. RESOURCE_EXHAUSTED with a sentence when it is too large, late or too many."""
        await self._admit(context)
        try:
            async with asyncio.timeout(MAX_PUT_S):
                return await self._values.receive(request_iterator)
        except ValueRefused as refused:
            sentence = str(refused)
        except TimeoutError:
            sentence = f"the value did not arrive within {MAX_PUT_S:g} s"
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, sentence)
        raise AssertionError("abort raises")

    async def Get(  # type: ignore[override]
        self, request: pb.Handle, context: grpc.aio.ServicerContext[pb.Handle, pb.Chunk]
    ) -> AsyncIterator[pb.Chunk]:
        """Hands out a value, once. NOT_FOUND with a sentence when it is gone."""
        await self._admit(context)
        try:
            data = self._values.take(request.handle)
        except ValueRefused as refused:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(refused))
            raise AssertionError("abort raises") from None
        for chunk in chunks_of(data):
            yield chunk

    async def Watch(  # type: ignore[override]
        self, request: pb.WatchRequest, context: grpc.aio.ServicerContext[pb.WatchRequest, pb.HostStatus]
    ) -> AsyncIterator[pb.HostStatus]:
        """The agent's view: at once, at each change, and once a second. FAILED_PRECONDITION for another incarnation."""
        if self._admission is not None and (fault := self._admission.watch(context)) is not None:
            await self._turn_away(fault, context)
        life = self.life
        if request.incarnation != life.identity.incarnation:
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"replica {life.identity.replica} runs here as incarnation {life.identity.incarnation}, "
                f"not {request.incarnation}",
            )
        if life.watchers >= MAX_WATCHES:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MAX_WATCHES} watch this replica already")
        if request.retire:
            life.retire()
        life.watchers += 1
        if life.on_watchers is not None:
            life.on_watchers()
        try:
            while True:
                yield self.status()
                await life.changed(IDLE_FRAME_S)
        finally:
            life.watchers -= 1
            if life.on_watchers is not None:
                life.on_watchers()

    def status(self) -> pb.HostStatus:
        """Where this host stands."""
        life = self.life
        told = self._engine.load() if self._engine is not None else None
        load = load_frame(told) if told is not None else None
        if load is not None:
            load.steps += life.signs
            if life.asks:
                load.running = max(load.running, 1)
        trouble = told.trouble if told is not None and life.phase == pb.PHASE_READY else ""
        return pb.HostStatus(
            replica=life.identity.replica,
            incarnation=life.identity.incarnation,
            phase=life.phase,
            load=load,
            reason=life.reason or trouble,
            permanent=life.permanent,
        )

    async def _admit(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """Raises what `abort` raises for a caller whose certificate names no gateway."""
        if self._admission is not None and (fault := self._admission.session(context)) is not None:
            await self._turn_away(fault, context)

    async def _turn_away(self, fault: str, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        log.warning("caller turned away", extra={"peer": context.peer(), "why": fault})
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, fault)

    async def _hello(self, frames: AsyncIterator[pb.ClientFrame]) -> pb.Hello | pb.Refusal:
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                first = await anext(frames)
        except (TimeoutError, StopAsyncIteration):
            return malformed(f"no hello came within {HANDSHAKE_S:g} s")
        if first.WhichOneof("frame") != "hello":
            return malformed("a session opens with a hello")
        refusal = refuse(first.hello, self.life)
        if refusal is None and len(self._sessions) >= MAX_SESSIONS:
            refusal = pb.Refusal(
                reason=pb.REFUSAL_REASON_NOT_READY, message=f"this replica has {MAX_SESSIONS} sessions already"
            )
        return first.hello if refusal is None else refusal


def malformed(sentence: str) -> pb.Refusal:
    """The refusal of a gateway that does not speak the protocol."""
    return pb.Refusal(reason=pb.REFUSAL_REASON_MALFORMED, message=sentence)


def make_server(
    servicer: EngineServicer, host: str, port: int, credentials: grpc.ServerCredentials | None = None
) -> tuple[grpc.aio.Server, int]:
    """A server for the servicer and the port it will have; `port` 0 picks a free one.

    Not started yet. Raises OSError when the address can't be had.
    """
    server = grpc.aio.server(options=server_options())
    pb_grpc.add_EngineServicer_to_server(servicer, server)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if credentials is None:
            bound = server.add_insecure_port(address)
        else:
            bound = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}: {_why_not(host, port) or error}") from None
    return server, bound


def _why_not(host: str, port: int) -> str:
    """Why an address can't be had, in the system's words: gRPC's own name a variable for debugging."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        try:
            probe.bind((host, port))
        except OSError as error:
            taken = ": another program listens on that port" if error.errno == errno.EADDRINUSE else ""
            return f"{error.strerror or error}{taken}"
    return ""
