"""Identifiers: opaque, made by us, never reused; each is one token of a subject."""

import base64
import binascii
import hashlib
import re
from typing import NewType

NodeId = NewType("NodeId", str)
ModelId = NewType("ModelId", str)
ReplicaId = NewType("ReplicaId", str)
RequestId = NewType("RequestId", str)
InspectionId = NewType("InspectionId", str)
TokenId = NewType("TokenId", str)
KeyId = NewType("KeyId", str)
ArtifactId = NewType("ArtifactId", str)
EventId = NewType("EventId", str)
"""Unguessable and random: it is also the id by which the log refuses duplicates."""
CorrelationId = NewType("CorrelationId", str)
Incarnation = NewType("Incarnation", str)
"""One start of a replica's process; a new start has a new one."""

_ID = re.compile(r"[a-z0-9-]{1,40}")
_NODE_ID = re.compile(r"n-[a-z2-7]{16}")
_USER_PREFIX = 20 << 3
"""The byte that makes an nkey's text start with U."""


def is_id(text: str) -> bool:
    """Whether `text` may stand as an id in a subject: 1 to 40 of `a-z`, `0-9` and `-`."""
    return _ID.fullmatch(text) is not None


def digest32(data: bytes, length: int = 16) -> str:
    """The first `length` base32 characters (lower case) of the SHA-256 of `data`."""
    return base64.b32encode(hashlib.sha256(data).digest()).decode().lower()[:length]


def node_id(public_key: bytes) -> NodeId:
    """A node is its public key (32 bytes, Ed25519): same key, same node."""
    return NodeId(f"n-{digest32(public_key)}")


def is_node_id(text: str) -> bool:
    """Whether `text` is written as a node's id is, in letters of whichever case."""
    return _NODE_ID.fullmatch(text.lower()) is not None


def model_id(entropy: bytes) -> ModelId:
    """A model's id from at least 10 random bytes."""
    return ModelId(f"m-{digest32(entropy)}")


def replica_id(model: ModelId, number: int) -> ReplicaId:
    """The `number`th replica ever wanted of a model; numbers count up and never return."""
    return ReplicaId(f"{model}-{number}")


def model_of(replica: ReplicaId) -> ModelId:
    """The model whose replica this is."""
    return ModelId(replica.rpartition("-")[0])


def request_id(entropy: bytes) -> RequestId:
    """A request's id from at least 10 random bytes, or from what makes two requests one."""
    return RequestId(f"q-{digest32(entropy)}")


def inspection_id(entropy: bytes) -> InspectionId:
    """An inspection's id from at least 10 random bytes, or from what makes two inspections one."""
    return InspectionId(f"i-{digest32(entropy)}")


def token_id(secret: str) -> TokenId:
    """A registration token's id: derived from its secret, gives nothing of it away."""
    return TokenId(f"t-{digest32(b'token-id:' + secret.encode())}")


def token_hash(secret: str) -> str:
    """What the log keeps of a registration token: the SHA-256 of its 256 random bits, in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()


def artifact_id(model: ModelId, revision: int, name: str) -> ArtifactId:
    """A metadata file of a model's revision."""
    return ArtifactId(f"a-{digest32(f'{model}:{revision}:{name}'.encode())}")


def name_key(kind: str, name: str) -> str:
    """The subject token that stands for a name that people type: `<kind>-<hash>`."""
    return f"{kind}-{digest32(name.encode())}"


def node_id_of(public_nkey: str) -> NodeId:
    """The node whose public key is written as an nkey user key (`U` and 55 base32 characters).

    Its form (https://github.com/nats-io/nkeys): one prefix byte, 32 bytes of key, two of CRC-16. Raises ValueError
    for anything else: no token can be minted for a damaged key.
    """
    try:
        raw = base64.b32decode(public_nkey)
    except ValueError:
        raw = b""
    if len(raw) != 35 or raw[0] != _USER_PREFIX:
        raise ValueError("a node's public key is an nkey user key: U and 55 characters of A-Z and 2-7")
    if binascii.crc_hqx(raw[:33], 0).to_bytes(2, "little") != raw[33:]:
        raise ValueError("the node's public key is damaged: its checksum doesn't fit")
    return node_id(raw[1:33])
