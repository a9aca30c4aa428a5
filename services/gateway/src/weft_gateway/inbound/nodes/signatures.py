"""What a node's own machine signs with its key: who it is, what it asks for, and when.

A registration is signed with the key that it names, or it says nothing of that key's node: a public key is no secret,
and a token is held by many. Without this, whoever has one could move another's node to addresses of their own.
"""

import base64
import binascii
import hashlib
import re
import time
from collections.abc import Callable

from weft_contracts.ids import NodeId
from weft_fleet import NodeView

from weft_gateway.domain.node_bodies import SIGNED_TIME, SignedBody
from weft_gateway.domain.refused import Refused
from weft_gateway.projections.directory import Directory

NONCE_S = 300.0
"""How far a nonce may be from this clock; a node whose clock is wrong takes the time from the answer's `Date`."""
NONCE, SIGNATURE = "weft-nonce", "weft-signature"
SIGNED = "The key's over `weft-register:<nonce>:<SHA-256 of the body, in hex>`; base64 of 64 bytes, Ed25519"
_TIME = re.compile(SIGNED_TIME, re.ASCII)


def signing_node(
    directory: Directory, body: SignedBody, what: str, failed: Callable[[], None], now: float | None = None
) -> NodeView:
    """The node that signed `weft-<what>:<node>:<nonce>`. Raises Refused; `failed` is called first where a caller
    may be guessing."""
    from weft_identity import nkey

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


def check_registration(nonce: str, signature: str, public_key: str, body: bytes, now: float) -> float:
    """When it was signed, by the nonce. Raises Refused unless the key signed
    `weft-register:<nonce>:<SHA-256 of the body, in hex>`.

    The nonce is seconds since the epoch, the signature base64 of 64 bytes, Ed25519.
    """
    from weft_identity import nkey

    if _TIME.search(nonce) is None:
        raise Refused(
            401,
            f"A registration is signed by the node: `{NONCE}` holds the seconds since the epoch, `{SIGNATURE}` the"
            " signature of `weft-register:<nonce>:<SHA-256 of the body>`.",
            code="not_signed",
        )
    check_time(nonce, now)
    signed = f"weft-register:{nonce}:{hashlib.sha256(body).hexdigest()}".encode()
    if not nkey.signed_by(public_key, signed, signature_bytes(signature)):
        raise Refused(401, "The signature is not the key's over this registration.", code="bad_signature")
    return float(nonce)


def check_newer(signed_at: float, last: float) -> None:
    """A registration counts once: what was heard on its way and is sent again must not bring an old address back.

    `last`: when the last one that was taken of this node was signed. Raises Refused, 401.
    """
    if signed_at <= last:
        sentence = "A registration of this node that was signed then or later was taken already; sign it anew."
        raise Refused(401, sentence, code="stale_nonce")
