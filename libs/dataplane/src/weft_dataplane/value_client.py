"""Puts and gets large values beside a session."""

import asyncio

import grpc.aio
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.gen import session_pb2_grpc as pb_grpc

from weft_dataplane.client_errors import FrameTooLarge, SessionBusy, SessionLost
from weft_dataplane.limits import MAX_VALUE_BYTES
from weft_dataplane.values import chunks_of


async def put_value(stub: "pb_grpc.EngineAsyncStub", data: bytes, timeout: float) -> str:
    """Put a value within `timeout` seconds and answer its handle.

    Raises FrameTooLarge above 64 MiB, SessionBusy when the replica has no room, SessionLost otherwise.
    """
    if len(data) > MAX_VALUE_BYTES:
        raise FrameTooLarge(f"a value of {len(data)} bytes exceeds the bound of {MAX_VALUE_BYTES} bytes")
    try:
        handle = await stub.Put(chunks_of(data), timeout=timeout)
    except grpc.aio.AioRpcError as error:
        if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
            raise SessionBusy(error.details() or "the replica has no room for large values") from None
        raise SessionLost(f"the value could not be put: {error.details()}") from None
    return handle.handle


async def get_value(stub: "pb_grpc.EngineAsyncStub", handle: str, timeout: float) -> bytes:
    """Get a value within `timeout` seconds; it is gone then. Raises SessionLost, FrameTooLarge."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout):
            async for chunk in stub.Get(pb.Handle(handle=handle)):
                size += len(chunk.data)
                if size > MAX_VALUE_BYTES:
                    raise FrameTooLarge(f"the value exceeds the bound of {MAX_VALUE_BYTES} bytes")
                parts.append(chunk.data)
    except TimeoutError:
        raise SessionLost(f"the value did not come within {timeout:g} s") from None
    except grpc.aio.AioRpcError as error:
        raise SessionLost(f"the value could not be got: {error.details()}") from None
    return b"".join(parts)


def prompt_bytes(submit: pb.Submit) -> bytes:
    """The prompt of a Submit as a value to put. Raises FrameTooLarge when something else makes it large."""
    match submit.WhichOneof("prompt"):
        case "chat":
            prompt = pb.Prompt(chat=submit.chat)
        case "text":
            prompt = pb.Prompt(text=submit.text)
        case "tokens":
            prompt = pb.Prompt(tokens=submit.tokens)
        case _:
            raise FrameTooLarge("the request exceeds a frame, and not by its prompt")
    return prompt.SerializeToString()
