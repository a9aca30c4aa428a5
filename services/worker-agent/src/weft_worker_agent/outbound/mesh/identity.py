"""The node's key, which is the node: made at the first start, kept in the state folder."""

import base64
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nkeys
from weft_contracts.ids import NodeId, node_id

from weft_worker_agent.outbound.files import private_file

FILE = "node.seed"
_nkeys: Any = nkeys  # it ships no types


class BadIdentity(ValueError):
    """The key file is damaged. The message never holds it."""


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Who this node is. `seed` is the secret: whoever holds it is this node."""

    node: NodeId
    public_key: str
    seed: bytes = field(repr=False)

    def sign(self, message: bytes) -> str:
        """The Ed25519 signature of a message, in base64."""
        return base64.b64encode(_nkeys.from_seed(bytearray(self.seed)).sign(message)).decode()


def load_or_make(state: Path) -> NodeIdentity:
    """The identity in a state folder. Raises BadIdentity, OSError."""
    path = state / FILE
    seed = private_file.read(path)
    if seed is None:
        seed = bytes(_nkeys.encode_seed(os.urandom(32), _nkeys.PREFIX_BYTE_USER))
        private_file.write(path, seed)
    try:
        public = bytes(_nkeys.from_seed(bytearray(seed.strip())).public_key).decode()
        raw = base64.b32decode(public + "=" * (-len(public) % 8))
    except Exception as error:  # nkeys has no common ancestor for what it raises on damage
        raise BadIdentity(
            f"{path} holds no NATS user seed ({type(error).__name__}): restore it, or remove it to join as a new node"
        ) from None
    return NodeIdentity(node_id(raw[1:33]), public, seed.strip())
