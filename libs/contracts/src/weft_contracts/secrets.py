"""Secrets by name: how a spec names one, and where its sealed value lies. No fact and no message holds a value openly.

The way of a secret, and what it is held against, is in the registry's README.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from pydantic import Field

from weft_contracts.ids import NodeId

SECRET_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}"
SecretName = Annotated[str, Field(pattern=f"^{SECRET_NAME}$")]
"""What a secret is called; case counts. It stands in the log."""
SealedId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
"""Under which a value that was set lies in the bucket, sealed to the registry's key. Drawn, and used once."""
NAMED = "secret:"
"""What an engine's argument begins with that names a secret."""
MOST_BYTES = 32 * 1024
"""Of one value: sealed and as base64 it then fits a pipe's and a message's bounds with room to spare."""
MOST_SECRETS = 256
MOST_IN_A_SPEC = 8

KEY = "key"
"""In the bucket: the registry's public key for values that are set, 32 bytes, by the registry."""
UNREADABLE = b"!"
"""Stands in a copy's place where the registry can't open what was set."""
_SEALED, _COPY = "sealed", "node"


def secrets_in(arguments: object) -> frozenset[str]:
    """What engine arguments name as secrets, however deep; also what can't be the name of one."""
    if isinstance(arguments, str):
        return frozenset((arguments[len(NAMED) :],)) if arguments.startswith(NAMED) else frozenset()
    if isinstance(arguments, Mapping):
        inner: Sequence[object] = list(cast("Mapping[object, object]", arguments).values())
    elif isinstance(arguments, list | tuple):
        inner = cast("Sequence[object]", arguments)
    else:
        return frozenset()
    return frozenset[str]().union(*map(secrets_in, inner))


def is_secret_name(text: str) -> bool:
    """Whether a secret can be called so."""
    return re.fullmatch(SECRET_NAME, text) is not None


def sealed_key(id: str) -> str:
    """Where in the bucket a value lies that was set, by a gateway."""
    return f"{_SEALED}.{id}"


def copy_key(node: NodeId, name: str, version: int) -> str:
    """Where in the bucket a version of a secret lies sealed to a node, by the registry."""
    return f"{_COPY}.{node}.{name}.{version}"


def bound_to_name(name: str) -> bytes:
    """What a value that is set is bound to: sealed under another name it can't be opened."""
    return f"weft secret {name}".encode()


def bound_to_node(node: NodeId, name: str, version: int) -> bytes:
    """What a copy for a node is bound to."""
    return f"weft secret {name} version {version} for {node}".encode()
