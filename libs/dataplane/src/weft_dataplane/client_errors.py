"""What can go wrong at a gateway's end of a session, each with one sentence."""

import grpc.aio
from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.tls import in_words


class SessionError(Exception):
    """Any failure of a session; the text is one sentence."""


class SessionRefused(SessionError):
    """The replica did not let the session in; `reason` is the protocol's name for why."""

    def __init__(self, reason: pb.RefusalReason.ValueType, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class SessionLost(SessionError):
    """The replica could not be reached, or the session is over."""


class SessionBusy(SessionError):
    """The replica takes no more now: too much waits to be sent, or its room for large values is full."""


class FrameTooLarge(SessionError):
    """Something that travels in one frame exceeds it, or a prompt exceeds the largest value."""


class UnaryCallFailed(SessionError):
    """The engine could not answer a call, or not in time; `fault` tells what to do about it."""

    def __init__(self, message: str, fault: pb.Fault.ValueType = pb.FAULT_ENGINE) -> None:
        super().__init__(message)
        self.fault = fault


def sentence_of(error: BaseException) -> str:
    """What a broken call says, in one line."""
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name.lower()}: {in_words(error.details() or 'no details')}"
    return str(error) or type(error).__name__
