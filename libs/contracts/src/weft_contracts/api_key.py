"""An API key's secret, and what may be known of it: `weft-<8 hex>-<43 of base64url>`.

The first part is public, the second holds 256 random bits.
"""

import base64
import hashlib
import re

from weft_contracts.ids import KeyId, digest32

MARK = "weft-"
"""Every secret begins so: what doesn't is no key of ours."""
ENTROPY_BYTES = 36
_PUBLIC_BYTES = 4
_PREFIX = len(MARK) + 2 * _PUBLIC_BYTES
_PREFIX_FORM = re.compile(r"weft-[0-9a-f]{8}")
_HASH_FORM = re.compile(r"[0-9a-f]{64}")


def secret_of(entropy: bytes) -> str:
    """The secret that 36 random bytes make. Raises ValueError for another number of bytes."""
    if len(entropy) != ENTROPY_BYTES:
        raise ValueError(f"a key is made of {ENTROPY_BYTES} random bytes, not {len(entropy)}")
    text = base64.urlsafe_b64encode(entropy[_PUBLIC_BYTES:]).decode().rstrip("=")
    return f"{MARK}{entropy[:_PUBLIC_BYTES].hex()}-{text}"


def hash_of(secret: str) -> str:
    """What the log keeps of a secret: its SHA-256, in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()


def prefix_of(secret: str) -> str:
    """A secret's public part."""
    return secret[:_PREFIX]


def key_id(hash: str) -> KeyId:
    """The id of the key whose secret has this hash: the same whoever records it."""
    return KeyId(f"k-{digest32(b'key-id:' + hash.encode())}")


def first_key(secret: str) -> str:
    """What a gateway is told of a first admin key (`WEFT_FIRST_KEY`): it gives nothing of the secret away."""
    return f"{prefix_of(secret)}:{hash_of(secret)}"


def parse_first_key(text: str) -> tuple[str, str]:
    """Prefix and hash. Raises ValueError with one sentence."""
    prefix, _, hash = text.partition(":")
    if not _PREFIX_FORM.fullmatch(prefix) or not _HASH_FORM.fullmatch(hash):
        raise ValueError("want <prefix>:<SHA-256 in hex>, as `weft keys first` prints it")
    return prefix, hash
