"""What a node's own machine signs with its key: who it is, what it asks for, and when."""

import base64
import binascii
import time
from collections.abc import Callable

from weft_contracts.ids import NodeId
from weft_placement.fleet import NodeView

from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.bodies import SignedBody
from weft_gateway.projections.directory import Directory

NONCE_S = 300.0
"""How far a nonce may be from this clock; a node whose clock is wrong takes the time from the answer's `Date`."""


def signing_node(
    directory: Directory, body: SignedBody, what: str, failed: Callable[[], None], now: float | None = None
) -> NodeView:
    """The node that signed `weft-<what>:<node>:<nonce>`. Raises Refused; `failed` is called first where a caller
    may be guessing."""
    from weft_servers import nkey

    node = directory.fleet.nodes.get(NodeId(body.node))
    if node is None:
        failed()
        raise Refused(404, f"Node {body.node!r} is not known here; register it.", code="node_not_found")
    check_time(body.nonce, time.time() if now is None else now)
    signed = f"weft-{what}:{body.node}:{body.nonce}".encode()
    if not nkey.signed_by(node.public_key, signed, signature_bytes(body.signature)):
        failed()
        raise Refused(401, "The signature is not the node's over this nonce.", code="bad_signature")
    if node.removed:
        raise Refused(403, f"Node {node.name!r} was removed from the mesh.", code="node_removed")
    if node.rejected is not None:
        raise Refused(403, f"An admin turned node {node.name!r} away: {node.rejected}", code="node_rejected")
    return node


def check_time(nonce: str, now: float) -> None:
    """Refuse what was signed too long ago, or is of the future, in seconds since the epoch. Raises Refused, 401."""
    off = abs(now - float(nonce))
    if off > NONCE_S:
        raise Refused(401, f"The nonce is {off:.0f} s away from this clock; sign with its time.", code="stale_nonce")


def signature_bytes(text: str) -> bytes:
    """Raises Refused, 400, for what is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(400, "The signature is not base64.", param="signature") from None
