"""What nodes are to have of models' files ahead of need and lack, as JSON: made anew when the log or a node said
more."""

from collections import Counter

import msgspec
from weft_api import FilesState, WantedFiles

from weft_gateway.domain.file_shapes import wishes_shape
from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.projections.directory import Directory


class RenderedWishes:
    """Kept from look to look."""

    def __init__(self, directory: Directory, board: ProgressBoard) -> None:
        self._directory = directory
        self._board = board
        self._versions = (-1, -1)
        self._shapes: list[WantedFiles] = []
        self._json = b"[]"

    def whole(self) -> bytes:
        """The list."""
        self._update()
        return self._json

    def count(self, state: FilesState) -> int:
        """Models' files on nodes, of those that are shown."""
        self._update()
        return Counter(each["state"] for each in self._shapes)[state]

    def _update(self) -> None:
        versions = self._directory.version, self._board.version
        if versions != self._versions:
            self._versions = versions
            self._shapes = wishes_shape(self._directory.fleet, self._board)
            self._json = msgspec.json.encode(self._shapes)
