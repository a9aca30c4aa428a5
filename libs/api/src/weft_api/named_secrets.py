"""Answers about secrets that specs name. None has a value. Times are seconds since the epoch."""

from typing_extensions import TypedDict

from weft_api.changes import Changed


class NamedSecret(TypedDict):
    """A secret by its name. `version` rises with each value; `models`: of which a live revision names it."""

    name: str
    version: int
    set_at: float
    models: list[str]


class NamedSecretPage(TypedDict):
    """Secrets by name, and the cursor of the next page."""

    items: list[NamedSecret]
    next: str | None


class NamedSecretChanged(Changed):
    """A secret that was removed."""

    secret: str


class NamedSecretSet(NamedSecretChanged):
    """A secret that has a value from now on, under a version."""

    version: str


class NodeSecret(TypedDict):
    """A secret for a node: sealed to its key, as base64; null where the node has this version already."""

    name: str
    version: int
    sealed: str | None
