"""Bodies of what a node's own machine asks. Strangers may send them: the first thing that doesn't fit ends the look."""

from typing import Annotated

from msgspec import Meta, Struct, field
from weft_contracts.facts.values import Caps, NodeKind
from weft_contracts.names import LONGEST_NODE_NAME, NAME
from weft_contracts.secrets import SECRET_NAME

MAX_REASON = 500
DRAIN_S = 60.0
MAX_DRAIN_S = 7 * 86_400
KINDS: dict[str, NodeKind] = {"worker": "worker", "agent": "agent"}
_END = r"$(?!\n)"
"""Of a text: `$` alone would pass over a newline behind it."""
SIGNED_TIME = r"^[0-9]{1,12}(\.[0-9]{1,6})?" + _END
"""Seconds since the epoch, as a node that signs them writes them."""


class CapsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a worker itself takes at most. A VRAM budget of its own comes with its devices."""

    replicas_per_model: Annotated[int, Meta(ge=0, le=10_000)] | None = None

    def caps(self) -> Caps:
        """As the log knows them."""
        return Caps(replicas_per_model=self.replicas_per_model)


class AddressesBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the node's data plane is reached."""

    host: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:%-]+" + _END, max_length=253)]
    http_port: Annotated[int, Meta(ge=0, le=65535)]


class RegisterBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A machine asks to join."""

    token: Annotated[str, Meta(min_length=1, max_length=512)]
    name: Annotated[str, Meta(pattern=f"^{NAME}{_END}", max_length=LONGEST_NODE_NAME)]
    public_key: Annotated[str, Meta(pattern="^U[A-Z2-7]{55}" + _END)]
    """An nkey user key."""
    addresses: AddressesBody
    labels: Annotated[dict[str, str], Meta(max_length=64)] = field(default_factory=dict[str, str])
    caps: CapsBody = CapsBody()
    certificate_key: Annotated[str, Meta(max_length=256)] = ""
    """For which it asks certificates, where the mesh speaks TLS: a public key on P-256, base64 of its DER."""
    kind: Annotated[str, Meta(max_length=32, extra_json_schema={"enum": list(KINDS)})] = "worker"
    """One of KINDS."""


class SignedBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a node asks for itself, signed with its key over `weft-<what>:<node>:<nonce>`."""

    node: Annotated[str, Meta(pattern="^[a-z0-9-]{1,40}" + _END)]
    nonce: Annotated[str, Meta(pattern=SIGNED_TIME)]
    """Seconds since the epoch."""
    signature: Annotated[str, Meta(min_length=1, max_length=128)]
    """Base64 of 64 bytes, Ed25519."""


class SignedDrainBody(SignedBody, frozen=True, forbid_unknown_fields=True):
    """The same, with how long its requests may take."""

    deadline_s: Annotated[float, Meta(ge=0, le=MAX_DRAIN_S)] = DRAIN_S


class HeartbeatBody(SignedBody, frozen=True, forbid_unknown_fields=True):
    """The same, with what keeps the node from the log."""

    problem: Annotated[str, Meta(max_length=MAX_REASON, pattern=r"^[^\x00-\x1f\x7f]*" + _END)] = ""


class SecretPollBody(SignedBody, frozen=True, forbid_unknown_fields=True):
    """A secret that the node needs, signed over `weft-secret:<name>:<node>:<nonce>`."""

    name: Annotated[str, Meta(pattern=f"^{SECRET_NAME}{_END}")]
    have: Annotated[int, Meta(ge=0, le=1 << 53)] = 0
    """The version that it has; 0: none."""


_FILES = "^[0-9a-f]{16}" + _END


class FilesNearBody(SignedBody, frozen=True, forbid_unknown_fields=True):
    """Files that the node needs, signed over `weft-files-near:<files>:<node>:<nonce>`."""

    files: Annotated[str, Meta(pattern=_FILES)]
    """Their digest."""


class FilesGoingBody(SignedBody, frozen=True, forbid_unknown_fields=True):
    """Files that the node would have go for want of room, signed over `weft-files-going:<files>:<node>:<nonce>`."""

    files: Annotated[str, Meta(pattern=_FILES)]
    """Their digest."""


class FilesReaderBody(SignedBody, frozen=True, forbid_unknown_fields=True):
    """A node that is asked for files by another asks whether that one may have them: signed over
    `weft-files-reader:<files>:<node>:<nonce>`."""

    files: Annotated[str, Meta(pattern=_FILES)]
    reader: SignedBody
    """The other one's words, signed over `weft-files:<files>:<node>:<its own id>:<nonce>`."""


NODE_BODIES = (
    RegisterBody,
    SignedBody,
    SignedDrainBody,
    HeartbeatBody,
    SecretPollBody,
    FilesNearBody,
    FilesGoingBody,
    FilesReaderBody,
)
