"""Answers to nodes that fetch files from one another."""

from typing_extensions import TypedDict


class NearNode(TypedDict):
    """A node that has files (`whole`), or to which they come before: where its own server answers."""

    node: str
    name: str
    host: str
    port: int
    whole: bool


class FilesNear(TypedDict):
    """Whom a node asks for files, in this order. Seconds: in which none of them brought a byte, after which it may ask
    the source (0: at once); after which it asks who is near anew."""

    peers: list[NearNode]
    source_after_s: float
    again_after_s: float


class FilesReader(TypedDict):
    """A node that may read these files, as it needs them; asked again after so many seconds."""

    reader: str
    files: str
    good_for_s: float


class FilesGoing(TypedDict):
    """Whether a node may have files go for want of room: not where its copy is the one that stays."""

    may_go: bool
