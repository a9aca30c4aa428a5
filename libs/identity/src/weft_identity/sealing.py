"""Values sealed to a key, so that its holder alone reads them: HPKE (RFC 9180) in base mode, X25519, HKDF-SHA256,
ChaCha20-Poly1305. Each sealing draws a key of its own, so no two of one value are alike.

Imported only where something is sealed or opened: `cryptography` costs 5 MB and a tenth of a second.
"""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from weft_identity import nkey
from weft_identity.trust import Trust

OVERHEAD = 48
"""Bytes that a sealed value has more than the value."""
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


SealingKey = X25519PrivateKey
"""What opens what was sealed to its public half."""


class CannotOpen(ValueError):
    """It was sealed to another key, is bound to something else, or is damaged."""


def seal(value: bytes, key: bytes, bound_to: bytes) -> bytes:
    """Seal a value to a public key of 32 bytes; it opens for who says the same of what it is bound to.

    Raises ValueError for what is no key.
    """
    return _SUITE.encrypt(value, X25519PublicKey.from_public_bytes(key), info=bound_to)


def open_sealed(sealed: bytes, key: X25519PrivateKey, bound_to: bytes) -> bytes:
    """The value. Raises CannotOpen."""
    try:
        return _SUITE.decrypt(sealed, key, info=bound_to)
    except (InvalidTag, ValueError) as error:
        raise CannotOpen(f"the sealed value can't be opened ({type(error).__name__})") from None


def registry_key(trust: Trust) -> X25519PrivateKey:
    """The key to which values are sealed that admins set: whoever has the trust folder has it, and nobody else.

    It is drawn from the operator's, so every registry of a mesh has the same one and there is no file more to keep.
    """
    derived = HKDF(hashes.SHA256(), 32, salt=None, info=b"weft: what secrets are sealed to")
    return X25519PrivateKey.from_private_bytes(derived.derive(trust.operator.seed.encode()))


def public_bytes(key: X25519PrivateKey) -> bytes:
    """The public half of a key, 32 bytes."""
    return key.public_key().public_bytes_raw()


def node_key(public: str) -> bytes:
    """The key to which a node's copies are sealed: its identity's public key (`U…`) as X25519 has it.

    One key may do both: https://eprint.iacr.org/2021/509; age does so with SSH keys. Raises nkey.BadKey.
    """
    return nkey.for_agreement(public)
