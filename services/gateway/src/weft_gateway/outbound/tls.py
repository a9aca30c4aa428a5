"""Which parts of the gateway speak TLS, by its settings: HTTP server, sessions with replicas, requests to nodes."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft_contracts import certificates
from weft_contracts.ids import NodeId
from weft_dataplane.tls import Certificates
from weft_runtime.settings import BadSetting
from weft_runtime.tls_settings import tls_folder

from weft_gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from weft_runtime.tls import TlsFolder


@dataclass(frozen=True, slots=True)
class GatewayTLS:
    """All members are set, or none is: then the mesh speaks without TLS."""

    folder: "TlsFolder | None" = None
    sessions: Certificates | None = None
    authority: str | None = None
    """The digest of the authority's certificate: registration tokens carry it."""

    def node(self, node: NodeId) -> Mapping[str, Any] | None:
        """How a node's own server is asked: it must show that node's certificate."""
        if self.folder is None:
            return None
        name = certificates.server_name(certificates.node_role(node))
        return {"ssl": self.folder.client(), "server_hostname": name}


def gateway_tls(settings: GatewaySettings) -> GatewayTLS:
    """What the settings name. Raises BadSetting."""
    folder = tls_folder(settings)
    if folder is None:
        return GatewayTLS()
    try:
        folder.people(settings.http_certificate, settings.http_key)
    except OSError as error:
        raise BadSetting(f"WEFT_HTTP_CERTIFICATE and WEFT_HTTP_KEY can't be used: {error}") from None
    authority = ssl.PEM_cert_to_DER_cert((folder.folder / certificates.AUTHORITY).read_text())
    return GatewayTLS(folder, Certificates(folder.folder), certificates.authority_digest(authority))
