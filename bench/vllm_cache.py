"""What one more request takes of vLLM's cache, as placement counts it and as vLLM's own functions do.

    python bench/vllm_cache.py

Models of several sorts of layers, each of 256 bytes a token, windows of 1,000 tokens and states of 100 KiB. Nothing is
loaded. Needs `PIP_FIND_LINKS`, as vLLM's tests do. Prints a table, and fails where a figure differs.
"""

import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

BYTES: Final = 2 * 64 * 2
"""Of one token in one layer: a key and a value of 64 numbers."""
WINDOW: Final = 1000
STATE: Final = 100 << 10


class Case(NamedTuple):
    """A model by how many layers of each sort it has, and how it runs."""

    whole: int
    windowed: int
    state: int
    context: int
    step: int
    block: int


CASES: Final = (
    Case(2, 10, 0, 8192, 2048, 128),
    Case(2, 11, 0, 8192, 2048, 128),
    Case(12, 13, 0, 8192, 2048, 16),
    Case(8, 40, 0, 32_768, 2048, 16),
    Case(0, 4, 0, 8192, 2048, 128),
    Case(12, 0, 36, 8192, 2048, 16),
    Case(1, 0, 3, 5000, 2048, 128),
    Case(2, 2, 4, 8192, 2048, 16),
    Case(8, 40, 0, 1500, 2048, 16),
    Case(18, 18, 0, 131_072, 8192, 16),
    Case(2, 3, 0, 9000, 512, 32),
)


def ours(case: Case) -> int:
    """Bytes that a second request adds to a claim."""
    from weft_contracts.engines import BUILTIN
    from weft_contracts.facts.shape import LayerCounts
    from weft_contracts.facts.source import PathSource
    from weft_contracts.facts.values import ModelSpec
    from weft_placement.grouped_cache import SortedCache, grouped_bytes

    counts = LayerCounts(whole=case.whole, windowed=case.windowed, state=case.state)
    cache = SortedCache(counts, case.whole * BYTES, case.windowed * BYTES, WINDOW, case.state * STATE)
    formula = BUILTIN["vllm"].claim
    assert formula.formula == "header"
    one, two = (
        ModelSpec(
            source=PathSource(path="/m"),
            engine="vllm",
            context_tokens=case.context,
            concurrency=requests,
            engine_args={"block_size": case.block, "max_num_batched_tokens": case.step},
        )
        for requests in (1, 2)
    )
    return grouped_bytes(two, formula, cache) - grouped_bytes(one, formula, cache)


def theirs(case: Case) -> int:
    """The same by vLLM, in whose environment this runs. Its blocks are made as long as a state is before it counts."""
    torch: Any = importlib.import_module("torch")
    sorts: Any = importlib.import_module("vllm.v1.kv_cache_interface")
    groups: Any = importlib.import_module("vllm.v1.core.kv_cache_utils")
    layouts: Any = importlib.import_module("vllm.config.cache")
    block = case.block * (-(-STATE // (case.block * BYTES)) if case.state else 1)
    attends = {"block_size": block, "num_kv_heads": 1, "head_size": 64, "dtype": torch.bfloat16}
    carries = {"shapes": ((STATE // 4,),), "dtypes": (torch.float32,), "page_size_padded": block * BYTES}
    layers = {f"layer.{place}.whole": sorts.FullAttentionSpec(**attends) for place in range(case.whole)}
    for place in range(case.windowed):
        layers[f"layer.{place}.windowed"] = sorts.SlidingWindowSpec(**attends, sliding_window=WINDOW)
    for place in range(case.state):
        layers[f"layer.{place}.state"] = sorts.MambaSpec(block_size=block, **carries, mamba_cache_mode="align")
    config = SimpleNamespace(
        max_in_flight_tokens=2 * case.step,
        model_config=SimpleNamespace(max_model_len=case.context, hf_config=SimpleNamespace(), use_mla=False),
        scheduler_config=SimpleNamespace(disable_hybrid_kv_cache_manager=False),
        parallel_config=SimpleNamespace(decode_context_parallel_size=1, prefill_context_parallel_size=1),
        cache_config=SimpleNamespace(
            mamba_cache_mode="align",
            num_gpu_blocks_override=None,
            block_size=block,
            get_resolved_kv_cache_layout=lambda: layouts.KVCacheLayout["LBNHC"],
        ),
        speculative_config=None,
        attention_config=SimpleNamespace(hisparse_config=None),
    )
    return int(groups._max_memory_usage_bytes_from_groups(config, groups.get_kv_cache_groups(config, layers)))


def main() -> None:
    if sys.argv[1:] == ["--theirs"]:
        print(json.dumps([theirs(case) for case in CASES]))
        return
    from weft_testing.vllm_environment import vllm_environment

    with tempfile.TemporaryDirectory() as name:
        python = vllm_environment(Path(__file__).parents[1], Path(name) / "vllm")
        command = [str(python), __file__, "--theirs"]
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    print("| whole, windowed, state | context | step | block | placement | vLLM |\n|---|---|---|---|---|---|")
    differing = 0
    for case, own in zip(CASES, json.loads(told.splitlines()[-1]), strict=True):
        counted = ours(case)
        differing += counted != own
        layers = f"{case.whole}, {case.windowed}, {case.state}"
        print(f"| {layers} | {case.context:,} | {case.step:,} | {case.block} | {counted:,} | {own:,} |")
    sys.exit(f"{differing} differ" if differing else 0)


if __name__ == "__main__":
    main()
