"""The node's own HTTP server, behind TLS where the mesh speaks it, and who its callers are there."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.types import Scope
from weft_runtime import web

from weft_worker_agent.outbound.mesh.certificate import NodeCertificate

Roles = Callable[[Scope], frozenset[str]]


def node_server(app: Starlette, host: str, certificate: NodeCertificate | None) -> web.QuietServer:
    """What serves an application to the mesh; with TLS, each part to its own roles."""
    plain = web.server(app, host, 0)
    if certificate is None:
        return plain
    from weft_runtime.secure_server import SecureServer
    from weft_runtime.tls import TlsFolder

    from weft_worker_agent.inbound.role_check import RoleCheck

    plain.config.app = RoleCheck(app)
    return SecureServer(plain.config, TlsFolder(certificate.folder).server)


def caller_roles(certificate: NodeCertificate | None) -> Roles | None:
    """What tells the roles of a caller's certificate; None where the mesh speaks plainly."""
    if certificate is None:
        return None
    from weft_runtime.secure_server import PEER

    return lambda scope: scope.get(PEER, frozenset())
