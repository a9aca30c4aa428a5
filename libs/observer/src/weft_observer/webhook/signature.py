"""Signatures as receivers know them: the Standard Webhooks convention, version 1.0.0.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md: HMAC-SHA256 over id, time
and body, joined by dots; several signatures, one for each secret, stand in one header.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"
LEAST, MOST = 24, 64
"""Bytes of a secret."""
MOST_SECRETS = 4


class BadSecret(ValueError):
    """It is no secret of that convention. Its text is one sentence, without the secret."""


class Signer:
    """Signs posts by one secret or several."""

    def __init__(self, secrets: Sequence[str]) -> None:
        """Raises BadSecret."""
        if not 1 <= len(secrets) <= MOST_SECRETS:
            raise BadSecret(f"it holds {len(secrets)} secrets: write 1 to {MOST_SECRETS}, one on a line")
        self._keys = [_key(secret) for secret in secrets]

    def headers(self, id: str, at: int, body: bytes) -> dict[str, str]:
        """The three headers of a post. `at`: seconds since the epoch, when it is sent."""
        content = f"{id}.{at}.".encode() + body
        signatures = [base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode() for key in self._keys]
        return {
            "webhook-id": id,
            "webhook-timestamp": str(at),
            "webhook-signature": " ".join(f"v1,{each}" for each in signatures),
        }


def _key(secret: str) -> bytes:
    wanted = f"a secret is {PREFIX} and {LEAST} to {MOST} bytes in base64: write what `openssl rand -base64 32` says"
    if not secret.startswith(PREFIX):
        raise BadSecret(wanted)
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise BadSecret(wanted) from None
    if not LEAST <= len(key) <= MOST:
        raise BadSecret(f"{wanted}; this one has {len(key)}")
    return key
