"""Which role a caller's certificate must name to be served by this node's server, where the mesh speaks TLS.

Health, metrics and the AsyncAPI document are for anyone: probes have no certificates.
"""

from starlette.types import ASGIApp, Receive, Scope, Send
from weft_contracts.card import BY_SLUG
from weft_contracts.certificates import GATEWAY, METADATA_CACHE, node_role
from weft_contracts.ids import NodeId
from weft_runtime.logs import get_logger
from weft_runtime.secure_server import PEER

from weft_worker_agent.inbound.problem import problem

_SMALL = (METADATA_CACHE, GATEWAY)
ALLOWED = {
    "/metadata/": _SMALL,
    f"{BY_SLUG}/": _SMALL,
    "/logs/": (GATEWAY,),
    "/uploads/": (GATEWAY,),
    "/files/": (node_role(NodeId("")),),
}
"""Which roles each part is for, by the beginning of its path; one that ends with `/` is any that begins so."""

_log = get_logger("weft.files")


class RoleCheck:
    """ASGI middleware behind `SecureServer`: 403 for a caller whose certificate names another role."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            wanted = next((roles for path, roles in ALLOWED.items() if scope["path"].startswith(path)), ())
            shown: frozenset[str] = scope.get(PEER, frozenset())
            if wanted and not any(_is(role, each) for role in shown for each in wanted):
                who = f"names {', '.join(sorted(shown))}" if shown else "is missing"
                whose = " or ".join(role.rstrip("/") for role in wanted)
                detail = f"this is for certificates of the role {whose} only, and the caller's {who}"
                _log.warning("caller turned away", path=scope["path"], why=detail)
                await problem(403, detail)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is(role: str, wanted: str) -> bool:
    return role.startswith(wanted) if wanted.endswith("/") else role == wanted
