"""The session protocol: both ends of one gRPC stream between a gateway and a replica."""

from weft_dataplane.client_errors import (
    FrameTooLarge,
    SessionBusy,
    SessionError,
    SessionLost,
    SessionRefused,
    UnaryCallFailed,
)
from weft_dataplane.embeddings import packed, unpacked
from weft_dataplane.engine import (
    Embeddings,
    EmbedInput,
    Engine,
    EngineFacts,
    EngineLoad,
    LoadFailed,
    OwnCanary,
    RequestRefused,
    TellsIds,
)
from weft_dataplane.host_life import HostLife, Identity
from weft_dataplane.host_watch import watch_host
from weft_dataplane.servicer import EngineServicer, make_server
from weft_dataplane.session_client import SessionClient, Sink, make_hello
from weft_dataplane.ticket import Ending, Ticket

__all__ = [
    "EmbedInput",
    "Embeddings",
    "Ending",
    "Engine",
    "EngineFacts",
    "EngineLoad",
    "EngineServicer",
    "FrameTooLarge",
    "HostLife",
    "Identity",
    "LoadFailed",
    "OwnCanary",
    "RequestRefused",
    "SessionBusy",
    "SessionClient",
    "SessionError",
    "SessionLost",
    "SessionRefused",
    "Sink",
    "TellsIds",
    "Ticket",
    "UnaryCallFailed",
    "make_hello",
    "make_server",
    "packed",
    "unpacked",
    "watch_host",
]
