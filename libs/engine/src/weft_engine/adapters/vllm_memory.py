"""How many bytes vLLM may fill with its KV cache: what the claim leaves beside weights and overhead, and no more."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from weft_contracts.engines import HeaderClaim

from weft_engine.launch import ClaimedDevice

SPARE_BLOCKS: Final = 2
"""vLLM keeps one block empty, and a request may need one that it has just begun."""

LENT: Final = 8
"""At most this part of the overhead, which was measured with room, is lent to the KV cache."""


class NoRoom(Exception):
    """The claim leaves no room for a KV cache; the message is a sentence."""


class Blocks(NamedTuple):
    """A KV cache as vLLM divides it, on one device."""

    bytes_per_token: int
    tokens: int
    """in a block"""

    def for_requests(self, requests: int, context_tokens: int) -> int:
        """Bytes that so many requests need, each with its full context."""
        blocks = requests * -(-context_tokens // self.tokens)
        return (blocks + SPARE_BLOCKS) * self.bytes_per_token * self.tokens


def kv_cache_bytes(
    devices: Sequence[ClaimedDevice], weights: int, formula: HeaderClaim, blocks: Blocks, context_tokens: int
) -> int:
    """What placement's formula counted for the KV cache on each claimed device, out of the smallest of the claims.

    `weights`: bytes in memory. Of the overhead a part is lent for the spare blocks, and so that one request has its
    whole context: all stays within the claim. Raises NoRoom.
    """
    accelerators = [device for device in devices if device.vendor != "cpu"]
    claimed = min(device.bytes for device in accelerators or devices)
    overhead = formula.overhead if accelerators else formula.cpu_overhead
    padded = weights + int(weights * formula.slack)
    share = -(-padded // max(1, len(accelerators)))
    left = claimed - share - overhead
    least = blocks.for_requests(1, context_tokens)
    lent = min(overhead // LENT, max(SPARE_BLOCKS * blocks.bytes_per_token * blocks.tokens, least - left))
    if left + lent < least:
        raise NoRoom(
            f"the claim of {claimed} bytes is too small: the weights take {share} of them, what vLLM needs beside "
            f"them {overhead}, and one request with a context of {context_tokens} tokens {least}"
        )
    return left + lent
