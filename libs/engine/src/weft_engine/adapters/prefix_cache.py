"""A block-wise prefix cache as large engines have it: whole blocks, chained hashes, least recently used out."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence


class PrefixCache:
    """Remembers which blocks of tokens were computed after which beginnings."""

    def __init__(self, block_tokens: int, blocks: int) -> None:
        self.block_tokens = block_tokens
        self._blocks = blocks
        self._known: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def match(self, tokens: Sequence[int]) -> int:
        """How many leading tokens are cached; they count as used now."""
        found = 0
        for block in self._chain(tokens):
            if block not in self._known:
                break
            self._known.move_to_end(block)
            found += self.block_tokens
        return found

    def remember(self, tokens: Sequence[int]) -> None:
        """Keep the blocks of these tokens; the least recently used make room."""
        if self._blocks == 0:
            return
        for block in self._chain(tokens):
            self._known[block] = None
            self._known.move_to_end(block)
            if len(self._known) > self._blocks:
                self._known.popitem(last=False)

    def _chain(self, tokens: Sequence[int]) -> Iterator[int]:
        before = 0
        size = self.block_tokens
        for start in range(0, len(tokens) - size + 1, size):
            before = hash((before, tuple(tokens[start : start + size])))
            yield before
