"""TLS of the data plane: both ends show a certificate of the mesh's authority, and each looks who the other is.

gRPC keeps no connection's certificate fresh by itself. A server asks for its files at each handshake (gRPC's dynamic
credentials); a client makes its credentials anew for each session. So what was renewed counts for the next session,
and sessions that stand go on.
"""

from pathlib import Path
from typing import Any, Final

import grpc
from weft_contracts import certificates
from weft_contracts.ids import NodeId

from weft_dataplane.limits import NameOptions

_UNTOLD: Final = "a certificate that names nobody"


class Certificates:
    """A folder with the authority's certificate, an own one and its key, read anew when the certificate changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mark: tuple[int, int] | None = None
        self._served: tuple[int, int] | None = None
        self._files = b"", b"", b""

    def _read(self) -> tuple[bytes, bytes, bytes]:
        """Authority, certificate chain, key. Raises OSError."""
        found = (self._folder / certificates.CERTIFICATE).stat()
        mark = found.st_mtime_ns, found.st_ino
        if mark != self._mark:
            names = certificates.AUTHORITY, certificates.CERTIFICATE, certificates.KEY
            authority, chain, key = ((self._folder / name).read_bytes() for name in names)
            self._files = authority, chain, key
            self._mark = mark
        return self._files

    def server(self) -> grpc.ServerCredentials:
        """For one server, which takes nobody without a certificate of this mesh. Raises OSError."""
        first = self._renewed()
        assert first is not None
        renewed: Any = self._renewed  # its None is grpcio's word for "as before", which the stubs don't have
        return grpc.dynamic_ssl_server_credentials(first, renewed, require_client_authentication=True)

    def channel(self) -> grpc.ChannelCredentials:
        """For one connection to a server of this mesh. Raises OSError."""
        authority, chain, key = self._read()
        return grpc.ssl_channel_credentials(authority, key, chain)

    def _renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """What a server shows from now on; None: what it shows already."""
        authority, chain, key = self._read()
        if self._mark == self._served:
            return None
        self._served = self._mark
        return grpc.ssl_server_certificate_configuration([(key, chain)], root_certificates=authority)


def names_node(node: NodeId) -> NameOptions:
    """Channel options that demand a certificate of a node, wherever it is reached."""
    return [("grpc.ssl_target_name_override", certificates.server_name(certificates.node_role(node)))]


class Admission:
    """Who may open a session with a host, and who may watch it: told by the roles in their certificates."""

    def __init__(self, node: NodeId) -> None:
        """`node`: on which the host runs."""
        self._watchers = frozenset({certificates.node_role(node)})
        self._gateways = frozenset({certificates.GATEWAY})

    def session(self, context: Any) -> str | None:
        """Why this caller gets no session; None: it is a gateway."""
        return _fault(context, self._gateways, "takes sessions from gateways")

    def watch(self, context: Any) -> str | None:
        """Why this caller may not watch; None: it is the node's own agent."""
        return _fault(context, self._watchers, "is watched by its own node's agent")


def _fault(context: Any, allowed: frozenset[str], what: str) -> str | None:
    shown: dict[str, list[bytes]] = context.auth_context()
    roles = certificates.roles_in(uri.decode(errors="replace") for uri in shown.get("peer_uri", ()))
    if roles & allowed:
        return None
    return f"this replica {what}, and the caller's certificate names {', '.join(sorted(roles)) or _UNTOLD}"


_WORDS: Final = {
    "Hostname Verification": "the certificate there names another node",
    "has expired": "the certificate there has expired",
    "not yet valid": "the certificate there is not valid yet: set the clocks",
    "CERTIFICATE_VERIFY_FAILED": "the certificate there is not of this mesh's authority",
    "WRONG_VERSION_NUMBER": "what answers there does not speak TLS",
}


_CLOSED: Final = (
    "the connection was closed before a word: one side speaks TLS and the other does not, or the certificate shown was"
    " refused as expired or of another mesh; the log of the other side says which"
)


def in_words(details: str) -> str:
    """What gRPC says of a connection that was not made, so that a person can read it."""
    for words, meaning in _WORDS.items():
        if words in details:
            return meaning
    if "failed to connect" in details and ("Socket closed" in details or "reset by peer" in details):
        return _CLOSED
    return details
