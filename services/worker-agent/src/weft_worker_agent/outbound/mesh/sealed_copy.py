"""A secret as it comes to this node: sealed by the registry to the node's own key, so that it alone can open it."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft_contracts.ids import NodeId
from weft_contracts.secrets import bound_to_node


class CannotOpen(ValueError):
    """It was sealed to another key, for another name or version, or is damaged. The message holds nothing of it."""


@dataclass(frozen=True, slots=True)
class SealedCopy:
    """One version of a secret."""

    version: int
    sealed: bytes

    @staticmethod
    def of(body: Mapping[str, Any]) -> "SealedCopy | None":
        """Of the gateway's answer; None where it says that there is no newer one. Raises ValueError, KeyError."""
        if body["sealed"] is None:
            return None
        return SealedCopy(int(body["version"]), base64.b64decode(body["sealed"], validate=True))


def opened(copy: SealedCopy, node: NodeId, name: str, seed: bytes) -> str:
    """The value. `seed` is the node's own, as text. Raises CannotOpen."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

    raw = base64.b32decode(seed + b"=" * (-len(seed) % 8))[2:34]
    key = X25519PrivateKey.from_private_bytes(hashlib.sha512(raw).digest()[:32])  # as Ed25519 takes its scalar
    suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
    try:
        return suite.decrypt(copy.sealed, key, info=bound_to_node(node, name, copy.version)).decode()
    except (InvalidTag, ValueError):
        raise CannotOpen(f"the secret {name} came in a form that this node can't open") from None
