"""The KV cache that a claim leaves to vLLM: no byte beyond it, on one device and on several."""

import pytest
from weft_contracts.engines import HeaderClaim
from weft_engine.adapters.vllm_memory import SPARE_BLOCKS, Blocks, NoRoom, kv_cache_bytes
from weft_engine.launch import ClaimedDevice

FORMULA = HeaderClaim(slack=0.05, overhead=2000, cpu_overhead=1000)
BLOCKS = Blocks(bytes_per_token=2, tokens=16)
SPARE = SPARE_BLOCKS * 2 * 16


def test_on_a_processor_the_cache_is_what_weights_and_overhead_leave() -> None:
    claimed = [ClaimedDevice(vendor="cpu", bytes=1050 + 1000 + 700)]
    assert 700 + SPARE == kv_cache_bytes(claimed, 1000, FORMULA, BLOCKS)


def test_over_two_devices_the_weights_are_shared_and_the_smaller_claim_counts() -> None:
    claimed = [
        ClaimedDevice(vendor="nvidia", number=0, bytes=525 + 2000 + 700),
        ClaimedDevice(vendor="nvidia", number=1, bytes=525 + 2000 + 300),
    ]
    assert 300 + SPARE == kv_cache_bytes(claimed, 1000, FORMULA, BLOCKS)


def test_the_spare_blocks_are_taken_from_the_overhead_and_never_from_beyond_the_claim() -> None:
    formula = HeaderClaim(slack=0, overhead=0, cpu_overhead=0)
    assert 10 == kv_cache_bytes([ClaimedDevice(vendor="cpu", bytes=1010)], 1000, formula, BLOCKS)


def test_a_claim_that_leaves_nothing_is_said_in_a_sentence() -> None:
    with pytest.raises(NoRoom, match="the claim of 2050 bytes leaves nothing for the KV cache: the weights take 1050"):
        kv_cache_bytes([ClaimedDevice(vendor="cpu", bytes=2050)], 1000, FORMULA, BLOCKS)


def test_a_request_takes_whole_blocks() -> None:
    assert (3 * 2 + SPARE_BLOCKS) * 32 == BLOCKS.for_requests(3, 17)
