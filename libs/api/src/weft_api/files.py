"""Answers about models' files that nodes fetch: where they lie, and where they are to lie. Sizes are bytes."""

from typing import Literal

from typing_extensions import TypedDict

from weft_api.progress import FetchProgress

FilesState = Literal["here", "coming", "wanted", "failed"]
"""`wanted`: it is to be fetched there, or waits for its turn; `failed`: the last try failed, and it is tried again."""


class FilesOnNode(TypedDict):
    """A model's files on one node. `fetched`: bytes that are there; `pinned`: they are to be there and to stay, whether
    replicas need them or not; `leaves`: they go once nothing uses them; `since`: when they came, in seconds since the
    epoch; `used_by`: replicas; `fault`: why the last try failed; null: it did not; `about`: for people, how far it
    is, why it waits, why it failed, or why it is kept; null: nothing is to be said."""

    node: str
    node_name: str
    state: FilesState
    fetched: int
    pinned: bool
    leaves: bool
    since: float | None
    used_by: list[str]
    fault: str | None
    about: str | None
    progress: FetchProgress | None


class WantedFiles(TypedDict):
    """Files that a node is to have ahead of need and lacks: `name`, of the model that they were asked for; `about`: how
    far they are, why they wait, or why they can't be had."""

    files: str
    name: str
    source: str
    node: str
    node_name: str
    state: FilesState
    about: str


class ModelFiles(TypedDict):
    """Files of a model by their digest. `source`: null: no model or wish names them any more; `models`: the names of
    those that do."""

    files: str
    source: str | None
    models: list[str]
    bytes: int
    nodes: list[FilesOnNode]


class ModelFilesPage(TypedDict):
    """Files by digest, and the cursor of the next page."""

    items: list[ModelFiles]
    next: str | None
