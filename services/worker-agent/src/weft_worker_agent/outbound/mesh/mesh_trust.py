"""The first look at a gateway: whether it belongs to the mesh that the registration token names.

Nothing is sent but a TLS greeting. The gateway shows its certificate and its authority's; the digest of that must be
the token's. Then the whole chain is checked by an ordinary connection that trusts that authority and no other.
"""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from weft_contracts import certificates

from weft_worker_agent.outbound.mesh.certificate import NodeCertificate

_WITHIN_S = 15.0


class NotTheMesh(Exception):
    """Somebody else answers there; the message is a sentence."""


async def authority_at(url: str, digest: str) -> bytes:
    """The certificate (DER) of the authority with this digest, as the gateway at `url` shows it.

    Raises NotTheMesh where it shows another, OSError where nothing answers in TLS within 15 s.
    """
    parts = urlsplit(url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(_WITHIN_S):
            _, writer = await asyncio.open_connection(
                parts.hostname, parts.port or 443, ssl=context, server_hostname=gateway_name()
            )
    except TimeoutError:
        raise OSError(f"no TLS connection within {_WITHIN_S:g} s") from None
    try:
        chain = _chain(writer.get_extra_info("ssl_object"))
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    for certificate in chain:
        if certificates.authority_digest(certificate) == digest:
            return certificate
    raise NotTheMesh(
        "what answers there is not of the mesh that the registration token names: the token was not sent. Somebody"
        " may sit between, or the token is of another mesh"
    )


@dataclass(frozen=True, slots=True)
class MeshTrust:
    """Whom a node believes to be its gateway: who bears a certificate of the mesh's authority for that role."""

    certificate: NodeCertificate
    """Where the authority's certificate is kept, and the node's own."""
    digest: str | None = None
    """Of the authority, as the registration token says; None: it is known already."""

    async def context(self, url: str) -> ssl.SSLContext:
        """Trusts the mesh's authority alone. Asks the gateway at `url` for it the first time.

        Raises NotTheMesh, OSError as `authority_at`.
        """
        known = self.certificate.authority
        if self.digest is not None and (known is None or self.digest != _digest(known)):
            self.certificate.trust(await authority_at(url, self.digest))
            known = self.certificate.authority
        from weft_runtime.tls import client_context

        return client_context(known or "")


def _digest(authority: str) -> str:
    return certificates.authority_digest(ssl.PEM_cert_to_DER_cert(authority))


def reason(error: BaseException) -> str:
    """Why there is no answer, in words where TLS is to blame."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            from weft_runtime.tls import why

            return why(cause)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


def gateway_name() -> str:
    """The name that a gateway's certificate must bear."""
    return certificates.server_name(certificates.GATEWAY)


def _chain(connection: Any) -> list[bytes]:
    """All that the other end showed, DER. Public since Python 3.13; before, one step further down."""
    if hasattr(connection, "get_unverified_chain"):
        return [bytes(each) for each in connection.get_unverified_chain()]
    import _ssl  # pyright: ignore[reportMissingModuleSource]

    shown: Any = connection._sslobj.get_unverified_chain() or ()
    der: Any = getattr(_ssl, "ENCODING_DER")  # noqa: B009 - it ships no types
    return [each.public_bytes(der) for each in shown]
