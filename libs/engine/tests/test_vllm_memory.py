"""The KV cache that a claim leaves to vLLM: no byte beyond it, on one device and on several."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from weft_contracts.engines import BUILTIN, HeaderClaim
from weft_dataplane import LoadFailed
from weft_engine.adapters.vllm_loading import kv_room
from weft_engine.adapters.vllm_memory import LENT, SPARE_BLOCKS, Blocks, NoRoom, kv_cache_bytes
from weft_engine.adapters.vllm_settings import VllmSettings
from weft_engine.launch import ClaimedDevice, Launch

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


@dataclass
class LoadedConfig:
    """What vLLM makes of a model's files, as far as its cache goes."""

    use_mla: bool
    dtype: Any = field(default_factory=lambda: SimpleNamespace(itemsize=2))
    hf_text_config: Any = field(default_factory=lambda: SimpleNamespace(num_hidden_layers=3))
    hf_config: Any = None
    max_model_len: int = 16
    runner_type: str = "generate"
    is_hybrid: bool = False
    is_attention_free: bool = False
    window: int | None = None

    def get_vocab_size(self) -> int:
        return 1

    def get_head_size(self) -> int:
        return 576

    def get_total_num_kv_heads(self) -> int:
        return 128

    def get_sliding_window(self) -> int | None:
        return self.window

    def get_diff_sampling_param(self) -> dict[str, Any]:
        return {}


def launch_of(**fields: object) -> Launch:
    return Launch.model_validate(
        {
            "replica": "m-1",
            "incarnation": "i",
            "node": "n",
            "revision_digest": "d",
            "engine": "vllm",
            "context_tokens": 16,
            "concurrency": 1,
            **fields,
        }
    )


@pytest.mark.parametrize(("latent", "vectors"), [(True, 1), (False, 2 * 128)])
def test_a_latent_cache_has_one_vector_a_token_and_layer_whatever_the_heads(
    tmp_path: Path, latent: bool, vectors: int
) -> None:
    cached = kv_room(launch_of(), VllmSettings(), tmp_path, LoadedConfig(latent), 16, False)
    assert (1 + SPARE_BLOCKS) * 16 * 3 * vectors * 576 * 2 == cached


@pytest.mark.parametrize("sorts", [{"is_hybrid": True}, {"is_attention_free": True}, {"window": 64}])
def test_a_claim_need_not_hold_the_whole_context_of_layers_that_do_not_keep_it(
    tmp_path: Path, sorts: dict[str, Any]
) -> None:
    (tmp_path / "config.json").write_text("{}")
    cpu_overhead = HeaderClaim.model_validate(BUILTIN["vllm"].claim.model_dump()).cpu_overhead
    launch = launch_of(devices=[{"vendor": "cpu", "bytes": cpu_overhead + (100 << 20)}])
    context = 1 << 16

    room = kv_room(launch, VllmSettings(), tmp_path, LoadedConfig(use_mla=False, **sorts), context, True)

    assert 100 << 20 <= room <= (100 << 20) + cpu_overhead // LENT
    with pytest.raises(LoadFailed, match=f"one request with a context of {context} tokens"):
        kv_room(launch, VllmSettings(), tmp_path, LoadedConfig(use_mla=False), context, True)
