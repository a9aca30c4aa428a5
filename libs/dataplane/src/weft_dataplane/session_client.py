"""A gateway's end of a session: submits requests and hands each output to its sink, from one frame reader."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Self

import grpc
import grpc.aio
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.gen import session_pb2_grpc as pb_grpc

from weft_dataplane.client_errors import (
    SessionLost,
    SessionRefused,
    sentence_of,
)
from weft_dataplane.limits import (
    MAX_FRAME_BYTES,
    NEWEST_VERSION,
    OLDEST_VERSION,
    SILENCE_S,
    NameOptions,
    channel_options,
)
from weft_dataplane.outbox import Outbox
from weft_dataplane.prompt_uploads import PromptUploads, failed_output
from weft_dataplane.unary_calls import UnaryCalls

Sink = Callable[[pb.Output], None]
"""Takes a request's outputs, called synchronously by the frame reader: it must be quick and must not block.

The last output is the one with a finish, and there is always exactly one. A sink that raises ends its own
request and no other. It is never called from within `submit` or `cancel`.
"""

CLOSE_S: Final = 2.0

log = logging.getLogger("weft.dataplane")

Call = grpc.aio.StreamStreamCall[pb.ClientFrame, pb.EngineFrame]


def make_hello(replica: str, incarnation: str, revision_digest: str, gateway: str) -> pb.Hello:
    """The first word of a session, with the protocol versions that this library speaks."""
    return pb.Hello(
        oldest_version=OLDEST_VERSION,
        newest_version=NEWEST_VERSION,
        replica=replica,
        incarnation=incarnation,
        revision_digest=revision_digest,
        gateway=gateway,
    )


class SessionClient:
    """One open session with one replica. Make it with `open`; use it from the event loop's thread only.

    `unary` makes calls that have one answer and no token stream: `count`, `embed`, `rerank`. `closed` is done, with a
    sentence, when the session is over for whatever reason; by then every sink has had its last output.
    """

    def __init__(
        self, target: str, channel: grpc.aio.Channel, call: Call, welcome: pb.Welcome, silence_s: float
    ) -> None:
        self.target = target
        self.welcome = welcome
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[str] = self._loop.create_future()
        self._channel = channel
        self._call = call
        self._stub = pb_grpc.EngineStub(channel)
        self._load = welcome.load
        self._outbox = Outbox()
        self.unary = UnaryCalls(self._stub, self._outbox)
        self._sinks: dict[int, Sink] = {}
        self._uploads = PromptUploads(self._stub, self._outbox, target, self._deliver)
        self._last_request = 0
        self._heard = self._loop.time()
        self._silence_s = silence_s
        self._listened = self._loop.time()
        self._watchdog = self._loop.call_later(silence_s / 4, self._listen_for_silence)
        self._tasks = [
            asyncio.create_task(self._read(), name=f"session-reader-{target}"),
            asyncio.create_task(self._write(), name=f"session-writer-{target}"),
        ]

    @classmethod
    async def open(
        cls,
        target: str,
        hello: pb.Hello,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        names: NameOptions | None = None,
        timeout: float = 5.0,
        silence_s: float = SILENCE_S,
    ) -> Self:
        """Open a session with the replica at `target` ("host:port") within `timeout` seconds.

        With `credentials` over TLS; `names` then says whose certificate is demanded (`tls.names_node`).
        Raises SessionRefused with the replica's reason, SessionLost when it can't be reached in time. A replica
        that is silent for `silence_s` seconds later on is given up.
        """
        options = channel_options()
        if credentials is None:
            channel = grpc.aio.insecure_channel(target, options=options)
        else:
            channel = grpc.aio.secure_channel(target, credentials, options=[*options, *(names or [])])
        try:
            async with asyncio.timeout(timeout):
                call: Call = pb_grpc.EngineStub(channel).Session()
                await call.write(pb.ClientFrame(hello=hello))
                first = await call.read()
            if not isinstance(first, pb.EngineFrame):
                raise SessionLost(f"the replica at {target} closed the session without a word")
            match first.WhichOneof("frame"):
                case "welcome":
                    return cls(target, channel, call, first.welcome, silence_s)
                case "refusal":
                    raise SessionRefused(first.refusal.reason, first.refusal.message)
                case other:
                    raise SessionLost(f"the replica at {target} opened with {other} instead of a welcome")
        except TimeoutError:
            await channel.close()
            raise SessionLost(f"no session with {target} within {timeout:g} s") from None
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            await channel.close()
            raise SessionLost(f"no session with {target}: {sentence_of(error)}") from None
        except BaseException:
            await channel.close()
            raise

    @property
    def load(self) -> pb.Load:
        """The engine's load as of the last frame: at most a second old while the session lives."""
        return self._load

    @property
    def running(self) -> int:
        """Requests of this client that have not had their last output."""
        return len(self._sinks)

    def submit(self, submit: pb.Submit, sink: Sink) -> int:
        """Send a request and answer its number, which is also written into `submit.request`.

        A prompt too large for a frame is put beside the stream first, by itself. Raises SessionLost when the
        session is over, SessionBusy when the replica does not read, FrameTooLarge when the prompt exceeds
        64 MiB; otherwise everything more that happens comes through the sink.
        """
        if self.closed.done():
            raise SessionLost(f"session lost: {self.closed.result()}")
        number = self._last_request + 1
        submit.request = number
        size = submit.ByteSize()
        if size > MAX_FRAME_BYTES - 16:
            self._uploads.begin(submit, size)
        else:
            self._outbox.put(pb.ClientFrame(submit=submit))
        self._last_request = number
        self._sinks[number] = sink
        return number

    def cancel(self, request: int) -> None:
        """End a request within one engine step. Its sink still gets its last output, FINISH_CANCELLED.

        A request that has ended, or is unknown, is no error.
        """
        if request not in self._sinks:
            return
        if self._uploads.cancel(request) or self._outbox.withdraw(request):
            cancelled = pb.Output(request=request, finish=pb.FINISH_CANCELLED)
            self._loop.call_soon(self._deliver, cancelled)
        else:
            self._outbox.cancel(request)

    async def close(self, why: str = "closed by the gateway") -> None:
        """End the session. Sinks that still wait get their last output, with an error. Bounded: 2 seconds."""
        self._lose(why)
        tasks = [*self._tasks, *self._uploads.tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        await self._channel.close()

    def _deliver(self, output: pb.Output) -> None:
        """Hand one output to its sink; a sink that raises loses its request and no other."""
        request = output.request
        sink = self._sinks.get(request)
        if sink is None:
            return
        if output.finish:
            del self._sinks[request]
        try:
            sink(output)
        except Exception:
            log.exception("sink failed", extra={"request": request, "target": self.target})
            if self._sinks.pop(request, None) is not None:
                self._outbox.cancel(request)

    async def _read(self) -> None:
        read = self._call.read
        now = self._loop.time
        deliver = self._deliver
        why = "the replica closed the session"
        try:
            while isinstance(frame := await read(), pb.EngineFrame):
                self._heard = now()
                if frame.HasField("step"):
                    step = frame.step
                    for output in step.outputs:
                        deliver(output)
                    if step.answers:
                        self.unary.take(step.answers)
                    self._load = step.load
                elif frame.HasField("refusal"):
                    why = frame.refusal.message
        except asyncio.CancelledError:
            return
        except grpc.aio.AioRpcError as error:
            why = sentence_of(error)
        except Exception as error:  # a frame that can't be taken must end the session, never hang it
            log.exception("frame reader failed", extra={"target": self.target})
            why = f"a frame could not be taken: {error}"
        self._lose(why)

    async def _write(self) -> None:
        try:
            while True:
                await self._call.write(await self._outbox.next())
        except asyncio.CancelledError:
            return
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            # the reader knows better why; it gets the same end from the call at once
            log.debug("frame writer ended", extra={"target": self.target, "why": sentence_of(error)})

    def _listen_for_silence(self) -> None:
        """Four times in the silence that is borne. Where this loop itself stood still, that time is not the
        replica's: its frames lie unread."""
        now = self._loop.time()
        passed, self._listened = now - self._listened, now
        if passed > 1.5 * self._silence_s / 4:
            self._heard = min(now, self._heard + passed)
        silent = now - self._heard
        if silent >= self._silence_s:
            self._lose(f"the replica was silent for {silent:.1f} s")
        else:
            self._watchdog = self._loop.call_later(self._silence_s / 4, self._listen_for_silence)

    def _lose(self, why: str) -> None:
        """The session is over: exactly one last output for each sink, then `closed`."""
        if self.closed.done():
            return
        self._watchdog.cancel()
        self._call.cancel()
        for task in (*self._tasks, *self._uploads.tasks):
            if task is not asyncio.current_task():
                task.cancel()
        self.closed.set_result(why)
        for request in list(self._sinks):
            self._deliver(failed_output(request, pb.FAULT_ENGINE, f"session lost: {why}"))
        self.unary.fail(f"session lost: {why}")
