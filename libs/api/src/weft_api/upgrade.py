"""Answers about versions: what may be written, and who can't read it."""

from typing_extensions import TypedDict

from weft_api.changes import Changed


class Format(TypedDict):
    """A fact that has more than one version: the newest one that the gateway reads, and the one that may be written."""

    fact: str
    newest: int
    written: int


class NodeBehind(TypedDict):
    """A node whose worker doesn't read what an assignment may hold. `heard`: it has said what it reads."""

    id: str
    name: str
    state: str
    heard: bool


class Upgrade(TypedDict):
    """Where an upgrade stands. `finished`: every newest version may be written."""

    finished: bool
    formats: list[Format]
    behind: list[NodeBehind]


class UpgradeFinished(Changed):
    """An upgrade that is finished. `raised`: what may be written from here on, as `fact=version` with spaces between;
    empty: it was so already."""

    raised: str
