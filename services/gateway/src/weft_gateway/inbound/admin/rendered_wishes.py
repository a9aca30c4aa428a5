"""What nodes are to have of models' files ahead of need and lack, as JSON: made anew when the log or a node said
more."""

import msgspec

from weft_gateway.domain.file_shapes import wishes_shape
from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.projections.directory import Directory


class RenderedWishes:
    """Kept from look to look."""

    def __init__(self, directory: Directory, board: ProgressBoard) -> None:
        self._directory = directory
        self._board = board
        self._versions = (-1, -1)
        self._json = b"[]"

    def whole(self) -> bytes:
        """The list."""
        versions = self._directory.version, self._board.version
        if versions != self._versions:
            self._versions = versions
            self._json = msgspec.json.encode(wishes_shape(self._directory.fleet, self._board))
        return self._json
