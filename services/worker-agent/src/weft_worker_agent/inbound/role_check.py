"""Which role a caller's certificate must name to be served by this node's server, where the mesh speaks TLS.

Health, metrics and the AsyncAPI document are for anyone: probes have no certificates.
"""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from weft_contracts.certificates import GATEWAY, METADATA_CACHE
from weft_runtime.logs import get_logger
from weft_runtime.secure_server import PEER

ALLOWED = {"/metadata/": METADATA_CACHE, "/logs/": GATEWAY}
"""Which role each part is for, by the beginning of its path."""
_log = get_logger("weft.files")


class RoleCheck:
    """ASGI middleware behind `SecureServer`: 403 for a caller whose certificate names another role."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            wanted = next((role for path, role in ALLOWED.items() if scope["path"].startswith(path)), None)
            shown: frozenset[str] = scope.get(PEER, frozenset())
            if wanted is not None and wanted not in shown:
                who = f"names {', '.join(sorted(shown))}" if shown else "is missing"
                detail = f"this is for certificates of the role {wanted} only, and the caller's {who}"
                _log.warning("caller turned away", path=scope["path"], why=detail)
                body = {"status": 403, "detail": detail}
                await JSONResponse(body, 403, media_type="application/problem+json")(scope, receive, send)
                return
        await self._app(scope, receive, send)
