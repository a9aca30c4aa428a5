"""A registration is signed with the key that it names, or it says nothing of that key's node.

A public key is no secret, and a token is held by many: without this, whoever has one could move another's node to
addresses of their own.
"""

import hashlib

from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.signed import check_time, signature_bytes

NONCE, SIGNATURE = "weft-nonce", "weft-signature"
SIGNED = "The key's over `weft-register:<nonce>:<SHA-256 of the body, in hex>`; base64 of 64 bytes, Ed25519"
_LONGEST_NONCE = 12


def check_signed(nonce: str, signature: str, public_key: str, body: bytes, now: float) -> None:
    """Raises Refused unless the key signed `weft-register:<nonce>:<SHA-256 of the body, in hex>`.

    The nonce is seconds since the epoch, the signature base64 of 64 bytes, Ed25519.
    """
    from weft_servers import nkey

    if not (nonce.isascii() and nonce.isdigit() and len(nonce) <= _LONGEST_NONCE):
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
