"""TLS by the mesh's own authority, for NATS and HTTP: contexts from a folder's files, and what went wrong in words.

Imported only where a mesh speaks TLS. The files are read anew when they change, so a renewed certificate counts for
the next connection; connections that stand are not touched.
"""

import logging
import ssl
from pathlib import Path
from typing import Any, cast

from weft_contracts import certificates

_MESH = f".{certificates.server_name('x').partition('.')[2]}"


class TlsFolder:
    """A folder with the authority's certificate, an own one, and its key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, tuple[tuple[int, int], ssl.SSLContext]] = {}

    def check(self) -> None:
        """Raises OSError or ValueError with a sentence where the files are missing or don't fit together."""
        try:
            self.client()
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error.filename or self.folder} is missing") from None
        except ssl.SSLError as error:
            raise ValueError(f"{self.folder} holds no certificate with its key: {why(error)}") from None

    def client(self) -> ssl.SSLContext:
        """For connections to servers of the mesh. Raises OSError, which an SSLError is."""
        return self._current("client", self._client)

    def server(self) -> ssl.SSLContext:
        """For a server that asks its clients for a certificate, and takes those that have none: what such a client
        may do, the server says. Raises OSError."""
        return self._current("server", self._server)

    def people(self, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
        """For the gateway: asks nobody for a certificate, and shows people one of their own choice.

        Whoever names a server of the mesh (SNI) sees the mesh's certificate. Raises OSError.
        """
        own = self._current("people", self._plain_server)
        if certificate is None:
            return own

        def chosen() -> ssl.SSLContext:
            context = _server_side()
            context.load_cert_chain(certificate, key)

            def choose(connection: Any, name: str | None, _: ssl.SSLContext) -> None:
                if name is not None and name.endswith(_MESH):
                    connection.context = self._current("people", self._plain_server)

            context.sni_callback = choose  # pyright: ignore[reportAttributeAccessIssue]
            return context

        return self._current("chosen", chosen, certificate)

    def _client(self) -> ssl.SSLContext:
        context = client_context((self.folder / certificates.AUTHORITY).read_text())
        context.load_cert_chain(self.folder / certificates.CERTIFICATE, self.folder / certificates.KEY)
        return context

    def _server(self) -> ssl.SSLContext:
        context = self._plain_server()
        context.load_verify_locations(self.folder / certificates.AUTHORITY)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.num_tickets = 0  # who comes again shows a certificate that is good then
        context.options |= ssl.OP_NO_TICKET
        return context

    def _plain_server(self) -> ssl.SSLContext:
        context = _server_side()
        context.load_cert_chain(self.folder / certificates.CERTIFICATE, self.folder / certificates.KEY)
        return context

    def _current(self, kind: str, make: Any, file: Path | None = None) -> ssl.SSLContext:
        found = (file or self.folder / certificates.CERTIFICATE).stat()
        mark = found.st_mtime_ns, found.st_ino
        made = self._made.get(kind)
        if made is None or made[0] != mark:
            made = self._made[kind] = mark, cast("ssl.SSLContext", make())
        return made[1]


def _server_side() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def client_context(authority: str) -> ssl.SSLContext:
    """Trusts one authority, given as PEM, and no other. Raises SSLError for what is none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority)
    return context


def nats_options(context: ssl.SSLContext) -> dict[str, Any]:
    """Options of a NATS client: TLS from the first byte on, so that nobody between can talk it out of that."""
    logging.getLogger("asyncio").addFilter(_worth_a_line)
    return {
        "tls": context,
        "tls_hostname": certificates.server_name(certificates.NATS),
        "tls_handshake_first": True,
    }


def roles_of(connection: Any) -> frozenset[str]:
    """The roles that the other end's verified certificate names; none without one. `connection` is an SSL object."""
    shown: Any = connection.getpeercert() if connection is not None else None
    names: list[tuple[str, str]] = list(shown["subjectAltName"]) if shown else []
    return certificates.roles_in(value for kind, value in names if kind == "URI")


def _worth_a_line(record: logging.LogRecord) -> bool:
    """Not what asyncio says of nats-py's streams at the end of each TLS connection."""
    return "eof_received" not in str(record.msg)


_WORDS = {
    "certificate has expired": "its certificate has expired",
    "certificate is not yet valid": "its certificate is not valid yet: set the clocks",
    "self-signed certificate": "its certificate is not of this mesh's authority",
    "self signed certificate": "its certificate is not of this mesh's authority",
    "unable to get local issuer certificate": "its certificate is not of this mesh's authority",
    "certificate signature failure": "its certificate is not of this mesh's authority",
    "authority and issuer": "its certificate is not of this mesh's authority",
    "hostname mismatch": "its certificate names another than it should",
    "ip address mismatch": "its certificate names another than it should",
    "not valid for": "its certificate names another than it should",
    "unsupported certificate purpose": "its certificate is not meant for this",
    "wrong version number": "it does not speak TLS",
    "unknown ca": "it does not know the authority of the certificate shown to it: that is of another mesh",
    "alert certificate expired": "it says that the certificate shown to it has expired",
    "certificate required": "it demands a certificate of this mesh",
    "bad certificate": "it does not take the certificate shown to it",
}


def why(error: BaseException) -> str:
    """Why no TLS connection came about, or why it ended, as a sentence's end about the other side."""
    text = f"{getattr(error, 'verify_message', '')} {error}".lower().replace("_", " ")
    for words, meaning in _WORDS.items():
        if words in text:
            return meaning
    if isinstance(error, ConnectionError | EOFError) or "eof" in text:
        return "it broke the TLS handshake off"
    if isinstance(error, TimeoutError):
        return "it did not finish the TLS handshake in time"
    return f"TLS fails: {error}"
