"""The agent's view of an engine host: a stream of statuses with a bounded silence."""

import asyncio
from collections.abc import AsyncGenerator

import grpc
import grpc.aio
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.gen import session_pb2_grpc as pb_grpc

from weft_dataplane.client_errors import SessionLost
from weft_dataplane.limits import SILENCE_S, NameOptions, channel_options
from weft_dataplane.tls import in_words


async def watch_host(
    target: str,
    incarnation: str,
    *,
    retire: bool = False,
    silence_s: float = SILENCE_S,
    credentials: grpc.ChannelCredentials | None = None,
    names: NameOptions | None = None,
) -> AsyncGenerator[pb.HostStatus, None]:
    """Statuses of the host at `target`: at once, at each change, once a second.

    `retire=True` also starts its retirement. Raises SessionLost when the host is gone, is another incarnation,
    or says nothing for `silence_s` seconds (give more while it loads: an engine may hold the process then).
    """
    options = channel_options()
    if credentials is None:
        channel = grpc.aio.insecure_channel(target, options=options)
    else:
        channel = grpc.aio.secure_channel(target, credentials, options=[*options, *(names or [])])
    async with channel:
        call = pb_grpc.EngineStub(channel).Watch(pb.WatchRequest(incarnation=incarnation, retire=retire))
        try:
            while True:
                async with asyncio.timeout(silence_s):
                    status = await call.read()
                if not isinstance(status, pb.HostStatus):
                    raise SessionLost(f"the host at {target} closed its watch")
                yield status
        except TimeoutError:
            raise SessionLost(f"the host at {target} was silent for {silence_s:g} s") from None
        except grpc.aio.AioRpcError as error:
            raise SessionLost(f"the host at {target} is gone: {in_words(error.details() or '')}") from None
        finally:
            call.cancel()
