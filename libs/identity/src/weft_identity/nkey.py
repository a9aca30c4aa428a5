"""NATS key pairs: ed25519 keys in the nkey text form (base32 of prefix, key and CRC-16).

Source of the format: the nkeys specification of the NATS project, https://github.com/nats-io/nkeys.
"""

import base64
import binascii
import enum
import os
from dataclasses import dataclass, field
from typing import Self

from nacl.exceptions import BadSignatureError, CryptoError
from nacl.signing import SigningKey, VerifyKey

_SEED_PREFIX = 18 << 3
_KEY_BYTES = 32


class BadKey(ValueError):
    """A text is no nkey of the kind that was asked for. The message never holds it: it may be a seed."""


class Role(enum.IntEnum):
    """What a key stands for; the value is the prefix byte that makes its text start with O, A or U."""

    OPERATOR = 14 << 3
    ACCOUNT = 0
    USER = 20 << 3


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A key that signs. Account signing keys are ordinary account keys; `repr` hides the secret."""

    role: Role
    public: str
    _signing: SigningKey = field(repr=False, compare=False)

    @classmethod
    def new(cls, role: Role) -> Self:
        """Make a key from the operating system's randomness."""
        return cls._of(role, os.urandom(_KEY_BYTES))

    @classmethod
    def from_seed(cls, text: str) -> Self:
        """Read a seed (`SO…`, `SA…`, `SU…`).

        Raises:
            BadKey: the text is damaged, or is a public key, or is of a role not used here.
        """
        raw = _decoded(text)
        if len(raw) != _KEY_BYTES + 2 or raw[0] & 0b11111000 != _SEED_PREFIX:
            raise BadKey("not a seed: a seed starts with SO, SA or SU and has 58 characters")
        # The role's byte is spread over two bytes so that the text starts with S and the role's letter.
        return cls._of(_role((raw[0] & 0b111) << 5 | raw[1] >> 3), raw[2:])

    @classmethod
    def _of(cls, role: Role, secret: bytes) -> Self:
        signing = SigningKey(secret)
        return cls(role, _encoded(bytes([role]) + bytes(signing.verify_key)), signing)

    @property
    def seed(self) -> str:
        """The secret as text. Whoever holds it is this key."""
        head = bytes([_SEED_PREFIX | self.role >> 5, (self.role & 0b11111) << 3])
        return _encoded(head + bytes(self._signing))

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte ed25519 signature of a message (a token's body, or the server's nonce)."""
        return self._signing.sign(message).signature


def role_of(public: str) -> Role:
    """Return what a public key stands for.

    Raises:
        BadKey: the text is damaged or is a seed.
    """
    return _role(_public_bytes(public)[0])


def expect_role(public: str, role: Role) -> str:
    """Return the public key if it is of the role.

    Raises:
        BadKey: it is of another role, or damaged.
    """
    if (found := role_of(public)) is not role:
        raise BadKey(f"{public} is of the role {found.name.lower()}, not {role.name.lower()}")
    return public


def signed_by(public: str, message: bytes, signature: bytes) -> bool:
    """Tell whether a signature of a message was made by the key.

    Raises:
        BadKey: `public` is no public key.
    """
    try:
        VerifyKey(_public_bytes(public)[1:]).verify(message, signature)
    except (BadSignatureError, ValueError):  # ValueError: a signature that isn't 64 bytes long
        return False
    return True


def for_agreement(public: str) -> bytes:
    """The same key as X25519 has it, 32 bytes: what is sealed to it, the holder of the seed opens.

    Raises:
        BadKey: `public` is no public key, or names no good point of the curve.
    """
    try:
        return bytes(VerifyKey(_public_bytes(public)[1:]).to_curve25519_public_key())
    except (CryptoError, ValueError) as error:
        raise BadKey("this key names no point that something can be sealed to") from error


def _public_bytes(public: str) -> bytes:
    raw = _decoded(public)
    if len(raw) != _KEY_BYTES + 1:
        raise BadKey("not a public key: a public key starts with O, A or U and has 56 characters")
    _role(raw[0])
    return raw


def _role(prefix: int) -> Role:
    try:
        return Role(prefix)
    except ValueError:
        raise BadKey("this key is of no role used here (operator, account, user)") from None


def _encoded(raw: bytes) -> str:
    checked = raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(checked).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    try:
        checked = base64.b32decode(text + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError):
        raise BadKey("not a key: it isn't base32") from None
    raw, crc = checked[:-2], checked[-2:]
    if binascii.crc_hqx(raw, 0).to_bytes(2, "little") != crc:
        raise BadKey("a damaged key: its checksum doesn't fit")
    return raw
