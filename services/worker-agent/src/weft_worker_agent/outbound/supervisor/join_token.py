"""The registration token on its way to the agent: out of the environment, from which it could be read for ever.

A launcher hands it over through a pipe. Who sets the variable instead, as a service unit does, gets a supervisor that
starts itself anew without it: the block of variables that a process was started with stays readable while it lives.
"""

import os
import sys
from collections.abc import MutableMapping

from weft_runtime import secret_pipe

VARIABLE = "WEFT_JOIN_TOKEN"
DESCRIPTOR = "WEFT_JOIN_TOKEN_FD"
"""A pipe that holds the token."""
FILE = "WEFT_JOIN_TOKEN_FILE"
"""A file that holds it, as containers are given secrets: it is in no environment then."""
_MOST_BYTES = 4096


class BadToken(ValueError):
    """What was given is no token; the message is a sentence, and doesn't hold it."""


def taken(environ: MutableMapping[str, str] = os.environ) -> bytes:
    """The token, which is then in the environment no more; empty: there is none. Raises BadToken."""
    said, descriptor, file = (environ.pop(each, "") for each in (VARIABLE, DESCRIPTOR, FILE))
    if not descriptor:
        return _read(file) if file and not said else said.encode()
    try:
        return secret_pipe.take(int(descriptor))
    except (OSError, ValueError):
        raise BadToken(f"{DESCRIPTOR}={descriptor!r} is no open file descriptor of this process") from None


def leave_environment(environ: MutableMapping[str, str] = os.environ) -> None:
    """Where the token stands in the environment, become this very program without it. Raises BadToken, OSError."""
    if not environ.get(VARIABLE) or environ.get(DESCRIPTOR):
        return
    try:
        descriptor = secret_pipe.give(environ.pop(VARIABLE).encode())
    except ValueError as error:
        raise BadToken(f"{VARIABLE} is no registration token: {error}") from None
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**environ, DESCRIPTOR: str(descriptor)})


def _read(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            text = opened.read(_MOST_BYTES + 1).strip()
    except OSError as error:
        raise BadToken(f"{FILE}: {file} can't be read: {error.strerror}") from None
    if not text or len(text) > _MOST_BYTES:
        raise BadToken(f"{FILE}: {file} holds no registration token")
    return text
