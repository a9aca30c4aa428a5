"""Texts to rerank in groups that fit a frame: each is scored against the query by itself."""

from collections.abc import Iterator, Sequence

from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.client_errors import UnaryCallFailed
from weft_dataplane.embeddings import FRAME_ROOM, INPUT_OVERHEAD, MAX_INPUTS


def rerank_groups(query: str, texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts in order. Raises UnaryCallFailed for one that fits no frame with its query, before the first group."""
    room = FRAME_ROOM - INPUT_OVERHEAD - len(query.encode())
    sizes = [INPUT_OVERHEAD + len(text.encode()) for text in texts]
    if (largest := max(sizes, default=0)) > room:
        what = f"query and text {sizes.index(largest)} take more than {FRAME_ROOM} bytes together"
        raise UnaryCallFailed(what, pb.FAULT_CONTEXT_EXCEEDED)
    return _groups(texts, sizes, room)


def _groups(texts: Sequence[str], sizes: Sequence[int], room: int) -> Iterator[list[str]]:
    group: list[str] = []
    left = room
    for text, size in zip(texts, sizes, strict=True):
        if group and (size > left or len(group) == MAX_INPUTS):
            yield group
            group, left = [], room
        group.append(text)
        left -= size
    if group:
        yield group
