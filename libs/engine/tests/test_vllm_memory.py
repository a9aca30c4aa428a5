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
    assert 700 + SPARE == kv_cache_bytes(claimed, 1000, FORMULA, BLOCKS, 16)


def test_over_two_devices_the_weights_are_shared_and_the_smaller_claim_counts() -> None:
    claimed = [
        ClaimedDevice(vendor="nvidia", number=0, bytes=525 + 2000 + 700),
        ClaimedDevice(vendor="nvidia", number=1, bytes=525 + 2000 + 300),
    ]
    assert 300 + SPARE == kv_cache_bytes(claimed, 1000, FORMULA, BLOCKS, 16)


def test_little_of_the_overhead_is_lent() -> None:
    formula = HeaderClaim(slack=0, overhead=0, cpu_overhead=80)
    assert 130 + 10 == kv_cache_bytes([ClaimedDevice(vendor="cpu", bytes=1210)], 1000, formula, BLOCKS, 16)


def test_what_one_request_lacks_of_its_context_is_lent_by_the_overhead() -> None:
    claimed = [ClaimedDevice(vendor="cpu", bytes=1050 + 1000 - 5)]
    assert BLOCKS.for_requests(1, 16) == kv_cache_bytes(claimed, 1000, FORMULA, BLOCKS, 16)


def test_a_claim_that_leaves_too_little_is_said_in_a_sentence() -> None:
    with pytest.raises(NoRoom, match="the claim of 2000 bytes is too small: the weights take 1050 of them, what vLLM"):
        kv_cache_bytes([ClaimedDevice(vendor="cpu", bytes=2000)], 1000, FORMULA, BLOCKS, 16)


def test_a_request_takes_whole_blocks() -> None:
    assert (3 * 2 + SPARE_BLOCKS) * 32 == BLOCKS.for_requests(3, 17)
