"""Who a certificate of the mesh's own authority names, and what of it travels in tokens, requests and files.

A certificate names its bearer's role twice: as a URI, `weft://<mesh>/node/<id>` or `weft://<mesh>/gateway`, which
servers look at, and as a DNS name, `<id>.node.weft.internal` or `gateway.weft.internal`, which clients demand. So
nobody is believed for an address: what a node says of where it is reached stands in no certificate.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable

from weft_contracts.ids import NodeId, digest32

AUTHORITY = "authority.pem"
CERTIFICATE = "certificate.pem"
"""The bearer's, then the authority's."""
KEY = "key.pem"
_SCHEME = "weft://"
_DOMAIN = "weft.internal"
GATEWAY = "gateway"
NATS = "nats"
METADATA_CACHE = "metadata-cache"

_DIGEST_CHARS = 43
_PINNED = "."
"""Between a registration token's secret and the authority's digest; neither has it."""
# SubjectPublicKeyInfo of an uncompressed point on P-256 (RFC 5480): all of it but the point is always the same.
_P256_HEAD = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B


def node_role(node: NodeId) -> str:
    """The role of a node's certificate."""
    return f"node/{node}"


def mesh_id(authority: bytes) -> str:
    """What the mesh of an authority is called in certificates; `authority` is its certificate (DER)."""
    return f"w-{digest32(authority)}"


def role_uri(mesh: str, role: str) -> str:
    """A role as it stands in a certificate."""
    return f"{_SCHEME}{mesh}/{role}"


def roles_in(uris: Iterable[str]) -> frozenset[str]:
    """The roles that a certificate's URIs name. The mesh in them is not looked at: the chain tells that."""
    return frozenset(uri.removeprefix(_SCHEME).partition("/")[2] for uri in uris if uri.startswith(_SCHEME)) - {""}


def server_name(role: str) -> str:
    """The DNS name that a server of a role must show."""
    return f"{'.'.join(reversed(role.split('/')))}.{_DOMAIN}"


def authority_digest(authority: bytes) -> str:
    """What a registration token carries of the authority's certificate (DER): its SHA-256, in base64url."""
    return base64.urlsafe_b64encode(hashlib.sha256(authority).digest()).decode().rstrip("=")


def pinned_token(secret: str, digest: str) -> str:
    """A registration token that names the mesh which may see its secret."""
    return f"{secret}{_PINNED}{digest}"


def split_token(token: str) -> tuple[str, str | None]:
    """A registration token's secret, and the digest of the authority; None where it carries none.

    Raises ValueError for a digest that was cut off or damaged.
    """
    secret, mark, digest = token.strip().partition(_PINNED)
    if not mark:
        return secret, None
    try:
        whole = len(digest) == _DIGEST_CHARS and len(base64.b64decode(digest + "=", b"-_", validate=True)) == 32
    except (binascii.Error, ValueError):
        whole = False
    if not whole:
        raise ValueError("the registration token is not whole: behind its dot stand 43 characters")
    return secret, digest


def check_key(key: str) -> bytes:
    """The public key for which a certificate is asked, DER: base64 of a SubjectPublicKeyInfo on the curve P-256.

    Raises ValueError with a sentence for anything else.
    """
    try:
        der = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        der = b""
    if len(der) != len(_P256_HEAD) + 64 or not der.startswith(_P256_HEAD):
        raise ValueError("the key of a certificate is a public key on the curve P-256 (SubjectPublicKeyInfo in base64)")
    point = der[len(_P256_HEAD) :]
    x, y = int.from_bytes(point[:32]), int.from_bytes(point[32:])
    if x >= _P or y >= _P or (y * y - (x * x * x - 3 * x + _B)) % _P:
        raise ValueError("the key of the certificate is no point on the curve P-256")
    return der
