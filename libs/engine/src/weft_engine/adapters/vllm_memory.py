"""How many bytes vLLM may fill with its KV cache: what the claim leaves beside weights and overhead, and no more."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from weft_contracts.engines import HeaderClaim

from weft_engine.launch import ClaimedDevice

SPARE_BLOCKS: Final = 2
"""vLLM keeps one block empty, and a request may need one that it has just begun."""


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


def kv_cache_bytes(devices: Sequence[ClaimedDevice], weights: int, formula: HeaderClaim, blocks: Blocks) -> int:
    """What placement's formula counted for the KV cache on each claimed device, out of the smallest of the claims.

    `weights`: bytes in memory. The spare blocks are taken from the overhead, so that all stays within the claim.
    Raises NoRoom.
    """
    accelerators = [device for device in devices if device.vendor != "cpu"]
    claimed = min(device.bytes for device in accelerators or devices)
    overhead = formula.overhead if accelerators else formula.cpu_overhead
    padded = weights + int(weights * formula.slack)
    share = -(-padded // max(1, len(accelerators)))
    left = claimed - share - overhead
    if left <= 0:
        raise NoRoom(
            f"the claim of {claimed} bytes leaves nothing for the KV cache: "
            f"the weights take {share} of them, and what vLLM needs beside them {overhead}"
        )
    return left + min(overhead, SPARE_BLOCKS * blocks.bytes_per_token * blocks.tokens)
