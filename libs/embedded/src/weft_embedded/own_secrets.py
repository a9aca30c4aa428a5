"""The secrets that a state has for itself: the token with which its own workers join, and its own admin key."""

import contextlib
import secrets
from collections.abc import Callable
from pathlib import Path

from weft_contracts import api_key

from weft_embedded.state import write_private


def join_secret(file: Path) -> str:
    """The secret of this state's own join token: 256 random bits, made once, mode 600."""
    return kept(file, lambda: secrets.token_urlsafe(32))


def admin_key(file: Path) -> str:
    """The secret of this state's own admin key, made once, mode 600."""
    return kept(file, lambda: api_key.secret_of(secrets.token_bytes(api_key.ENTROPY_BYTES)))


def kept(file: Path, make: Callable[[], str]) -> str:
    """The secret that a file holds; made, mode 600, where it holds none."""
    with contextlib.suppress(FileNotFoundError):
        if known := file.read_text().strip():
            return known
    secret = make()
    write_private(file, secret + "\n")
    return secret
