"""What a change answers: the request for it, and what arose."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict
from weft_contracts.facts.values import Scope

from weft_api.nodes import Caps, Labels
from weft_api.placements import DryRun
from weft_api.secrets import SecretState


class Changed(TypedDict):
    """A change that is in the log, by its request's id."""

    request: str


class NodeChanged(Changed):
    """A node that was changed."""

    node: str


class NodeLeaves(NodeChanged):
    """A node that is removed, or drains to be removed."""

    state: Literal["draining", "removed"]


class LabelsChanged(NodeChanged, Labels):
    """A node's labels as they are now."""


class CapsChanged(NodeChanged):
    """A node's caps as they are now."""

    caps: Caps


class Unloaded(NodeChanged):
    """A model that is taken off a node. `replicas`: those that go, by id, with spaces between them; empty: none was
    there."""

    model: str
    replicas: str


class ModelChanged(Changed):
    """A model that was changed."""

    model: str


class Deployed(Changed):
    """A revision that was taken, or with `dry_run` would be: then without a `model`. Of a source that workers fetch,
    what one of them found: how many `files` of how many `bytes`, the short name of their `licence`, whether the
    source is `gated` (`yes`), and the `source` at its commit. Of files that are sent, `upload` is what they
    are sent as. With `dry_run`, `plan` is where its replicas would go."""

    revision: str
    plan: NotRequired[DryRun]
    model: NotRequired[str]
    files: NotRequired[str]
    bytes: NotRequired[str]
    licence: NotRequired[str]
    gated: NotRequired[str]
    source: NotRequired[str]
    upload: NotRequired[str]


class Uploaded(TypedDict):
    """How many bytes of a file that is sent are there, from its front on, of how many."""

    bytes: int
    size: int


class ModelRetried(ModelChanged):
    """A model whose newest revision is tried again."""

    revision: str


class ModelRolledBack(ModelChanged):
    """A model whose next revision is as one before."""

    revision: str
    to: str


class EngineProfileWithdrawn(Changed):
    """An engine that the mesh knows no more."""

    engine: str


class EngineProfileChanged(Changed):
    """An engine, and the digest of the profile by which the mesh knows it now."""

    engine: str
    digest: str


class BackendRecipeChanged(Changed):
    """An engine that nodes install by the recipe that was sent."""

    engine: str


class BackendRecipeWithdrawn(Changed):
    """An engine whose recipe was taken back."""

    engine: str


class BackendUpgraded(Changed):
    """An engine whose replicas move to this version."""

    engine: str
    version: str


class NodeBackendRemoved(Changed):
    """A node that removes what it installed of an engine."""

    node: str
    engine: str


class NodeBackendWanted(NodeBackendRemoved):
    """A node that is to have an engine ahead of need, in this version, for this vendor's devices."""

    version: str
    vendor: str


class FilesKept(Changed):
    """Files of a model, by digest, that nodes need not keep any more: their names, with commas between."""

    files: str
    nodes: str


class FilesRemoved(FilesKept):
    """Files that go; `in_use`: on these of the nodes something uses them, and they go after it."""

    in_use: str


class FilesFetched(Changed):
    """Files of a model, by digest, that nodes are to have and to keep: their names, with commas between."""

    files: str
    model_name: str
    nodes: str


class TokenChanged(Changed):
    """A registration token that was changed."""

    token: str


class TokenMade(TokenChanged):
    """A new registration token. `secret` is shown this once; null where the same Idempotency-Key has made the token
    before. The rest is as it is listed, once the gateway has read it."""

    secret: str | None
    id: NotRequired[str]
    name: NotRequired[str]
    state: NotRequired[SecretState]
    auto_approve: NotRequired[bool]
    expires_at: NotRequired[float | None]
    created_at: NotRequired[float]
    most_waiting: NotRequired[int | None]


class KeyChanged(Changed):
    """An API key that was changed."""

    key: str


class KeyMade(KeyChanged):
    """A new API key. `secret` is shown this once; null where the same Idempotency-Key has made the key before. The rest
    is as it is listed, once the gateway has read it."""

    secret: str | None
    id: NotRequired[str]
    name: NotRequired[str | None]
    prefix: NotRequired[str]
    scopes: NotRequired[list[Scope]]
    models: NotRequired[list[str] | None]
    state: NotRequired[SecretState]
    expires_at: NotRequired[float | None]
    created_at: NotRequired[float]
    created_by: NotRequired[str]
    revoked_at: NotRequired[float | None]


class NameErased(TypedDict):
    """A key whose name nobody knows any more."""

    key: str
