"""What a replica claims beside what its engine was seen to use, with models of every sort that claims know.

    python bench/claims.py [--engines llama.cpp,vllm] [--only WORDS]

Each model is written with random weights, its header read as a worker reads it, its claim computed as placement does.
Then the engine host loads it within that claim, answers one request that fills a step, and its private memory is read
(USS, with that of its children). llama.cpp is loaded once more in a process of its own that says how large its buffers
are. Prints a table: MiB of the parts of the claim and of what llama.cpp says of them, the claim, what was seen, and
claim ÷ seen. `--only`: the rows whose model is called so. vLLM needs `PIP_FIND_LINKS`, as its tests do.
"""

import argparse
import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
from claim_models import Size, write_experts, write_folder, write_latent, write_plain, write_state, write_windowed
from engine_host import hosted
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_contracts.gen import session_pb2 as pb
from weft_gguf.header import read_header
from weft_gguf.weights import weights_of_header
from weft_placement.activations import step_bytes
from weft_placement.claim import need_of
from weft_placement.draft_model import draft_spec
from weft_sources.config_weights import config_body, weights_of_config
from weft_sources.safetensors_header import tensor_bytes_of
from weft_testing.vllm_environment import vllm_environment

MIB = 1 << 20
PROMPT = "abcdefgh " * 100
ANSWER_S = 300.0
LAST_WORDS_S = 1.0
"""llama.cpp's log has a thread of its own."""
BUFFERS = re.compile(r"(model buffer|KV buffer|RS buffer|compute buffer) size = +([0-9.]+) MiB")


@dataclass(frozen=True, slots=True)
class Case:
    """A model and how it runs."""

    title: str
    write: Callable[[Path], Path]
    engine: str
    context: int
    concurrency: int
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    draft: Callable[[Path], Path] | None = None
    """Writes a draft model, where it has one."""


SMALL, MIDDLE, LARGE = Size(6, 256, 4096), Size(6, 1024, 16_384), Size(8, 2048, 32_768)
LLAMA = "llama.cpp"
EAGER = {"enforce_eager": True, "block_size": 32}
"""What is compiled else takes minutes, and a compiler."""
SLIDING = {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 1024}
CASES = (
    Case("Llama, 11 MiB", lambda to: write_plain(to, SMALL), LLAMA, 1024, 8),
    Case("Llama, 172 MiB", lambda to: write_plain(to, MIDDLE), LLAMA, 4096, 8),
    Case("the same, long", lambda to: write_plain(to, MIDDLE), LLAMA, 32_768, 1),
    Case("Llama, 832 MiB", lambda to: write_plain(to, LARGE), LLAMA, 4096, 4),
    Case("the same in Q8_0", lambda to: write_plain(to, LARGE, quantised=True), LLAMA, 4096, 4),
    Case(
        "cache in q8_0 and q4_0",
        lambda to: write_plain(to, MIDDLE),
        LLAMA,
        8192,
        8,
        {"cache_type_k": "q8_0", "cache_type_v": "q4_0"},
    ),
    Case(
        "with a draft model of 19 MiB",
        lambda to: write_plain(to, MIDDLE),
        LLAMA,
        4096,
        8,
        draft=lambda to: write_plain(to, Size(3, 256, MIDDLE.vocabulary)),
    ),
    Case("windows of 1,024 (Gemma 3)", lambda to: write_windowed(to, MIDDLE, 1024), LLAMA, 16_384, 4),
    Case("8 experts", lambda to: write_experts(to, MIDDLE, 8), LLAMA, 4096, 4),
    Case("latent attention (DeepSeek 2)", lambda to: write_latent(to, MIDDLE, compressed=True), LLAMA, 8192, 8),
    Case("the same, file of before", lambda to: write_latent(to, MIDDLE, compressed=False), LLAMA, 8192, 2),
    Case("a state, no attention (Mamba)", lambda to: write_state(to, MIDDLE), LLAMA, 4096, 8),
    Case("Llama, 172 MiB, bfloat16", lambda to: write_folder(to, MIDDLE, "bfloat16"), "vllm", 4096, 8, EAGER),
    Case("the same, float32", lambda to: write_folder(to, MIDDLE, "float32"), "vllm", 4096, 8, EAGER),
    Case(
        "windows of 1,024 (Mistral)",
        lambda to: write_folder(to, MIDDLE, "bfloat16", **SLIDING),
        "vllm",
        16_384,
        4,
        EAGER,
    ),
    Case("Llama, 832 MiB, bfloat16", lambda to: write_folder(to, LARGE, "bfloat16"), "vllm", 8192, 4, EAGER),
)


def weights_at(path: Path) -> Weights:
    """What a worker tells of a model's files."""
    if path.is_file():
        return weights_of_header(read_header(path))
    config, parts = path / "config.json", sorted(path.glob("*.safetensors"))
    size = sum(part.stat().st_size for part in parts)
    return weights_of_config(config_body(config.read_bytes(), str(config)), size, str(config), tensor_bytes_of(parts))


def spec_of(case: Case, path: Path) -> ModelSpec:
    """As a mesh would have it."""
    return ModelSpec(
        source=PathSource(path=str(path)),
        engine=case.engine,
        context_tokens=case.context,
        concurrency=case.concurrency,
        engine_args=dict(case.arguments),
        weights=weights_at(path),
        draft=weights_at(Path(case.arguments["draft_model"])) if case.draft is not None else None,
    )


async def seen(case: Case, path: Path, claim: int, python: str) -> int:
    """Bytes of private memory of the host and its children, after one request."""
    launch = {
        "engine": case.engine,
        "model_path": str(path),
        "context_tokens": case.context,
        "concurrency": case.concurrency,
        "engine_args": dict(case.arguments),
        "devices": [{"vendor": "cpu", "bytes": claim}],
        "correlation_id": "bench",
        "without_agent_s": 3600,
    }
    async with hosted(launch, python) as (pid, client):
        ended = asyncio.Event()

        def take(output: pb.Output) -> None:
            if output.finish:
                ended.set()

        request = pb.Submit(max_tokens=8, sampling=pb.Sampling(temperature=0))
        request.chat.messages.add(role="user", content=PROMPT)
        client.submit(request, take)
        async with asyncio.timeout(ANSWER_S):
            await ended.wait()
        host = psutil.Process(pid)
        return sum(each.memory_full_info().uss for each in (host, *host.children(recursive=True)))


def said(case: Case, path: Path) -> dict[str, float]:
    """MiB of llama.cpp's buffers, as it says itself."""
    launch = {"context": case.context, "concurrency": case.concurrency, **case.arguments}
    command = [sys.executable, __file__, "--tell", str(path), json.dumps(launch)]
    log = subprocess.run(command, capture_output=True, text=True, check=True, timeout=ANSWER_S).stderr
    found: dict[str, float] = {}
    for name, size in BUFFERS.findall(log):
        found[name] = found.get(name, 0.0) + float(size)
    return found


def tell(path: str, launch: dict[str, Any]) -> None:
    """Load a model with all of llama.cpp's own log, with the parameters of the engine host."""
    from weft_engine.adapters.llamacpp_native import native_params
    from weft_engine.adapters.llamacpp_settings import LlamaCppSettings
    from weft_engine.launch import Launch

    native: Any = importlib.import_module("xllamacpp")
    context, concurrency = launch.pop("context"), launch.pop("concurrency")
    told = Launch.model_validate(
        {
            "replica": "m-1",
            "incarnation": "i",
            "node": "n",
            "revision_digest": "d",
            "engine": LLAMA,
            "model_path": path,
            "context_tokens": context,
            "concurrency": concurrency,
            "engine_args": launch,
        }
    )
    params = native_params(native, told, LlamaCppSettings.of(told), "k" * 32, embeddings=False)
    params.verbosity = 5
    server = native.Server(params)
    time.sleep(LAST_WORDS_S)
    sys.stderr.flush()
    os._exit(0 if server is not None else 1)  # a server that is ended as soon as it stands never ends


def row(case: Case, path: Path, python: str) -> str:
    """One line of the table."""
    spec = spec_of(case, path)
    profile = BUILTIN[case.engine]
    need, formula = need_of(spec, profile), profile.claim
    assert formula.formula == "header"
    claim = need.on_each("cpu", 1)
    words = said(case, path) if case.engine == LLAMA else {}
    used = asyncio.run(seen(case, path, claim, python))
    cached = words.get("KV buffer", 0.0) + words.get("RS buffer", 0.0)
    step, weights, cache = step_bytes(spec, formula), need.weights, need.kv
    if (draft := draft_spec(spec, profile)) is not None:
        own = need_of(draft.model_copy(update={"engine_args": {}}), profile)
        step, weights, cache = step + step_bytes(draft, formula), weights + own.weights, cache + own.kv
    buffers = (
        [f"{words['model buffer']:.0f}", f"{cached:.1f}", f"{words['compute buffer']:.0f}"] if words else ["", "", ""]
    )
    figures = (
        *(case.title, case.engine, f"{case.context:,} × {case.concurrency}"),
        *(f"{weights / MIB:.0f}", buffers[0], f"{cache / MIB:.1f}", buffers[1], f"{step / MIB:.0f}" if step else ""),
        *(buffers[2], f"{claim / MIB:.0f}", f"{used / MIB:.0f}", f"{claim / used:.2f}"),
    )
    return f"| {' | '.join(figures)} |"


def main() -> None:
    if sys.argv[1:2] == ["--tell"]:
        tell(sys.argv[2], json.loads(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="llama.cpp,vllm")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    wanted, only = given.engines.split(","), given.only
    headings = ("model", "engine", "context × requests", "weights", "said", "cache", "said", "step", "said", "claim")
    print(f"| {' | '.join((*headings, 'seen', 'claim ÷ seen'))} |\n{'|---' * (len(headings) + 2)}|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = Path(__file__).parents[1]
        vllm = str(vllm_environment(tree, folder / "vllm")) if "vllm" in wanted else ""
        for number, case in enumerate(each for each in CASES if each.engine in wanted and only in each.title):
            path = case.write(folder / (f"{number}.gguf" if case.engine == LLAMA else str(number)))
            if case.draft is not None:
                draft = case.draft(folder / f"{number}-draft.gguf")
                case = replace(case, arguments={**case.arguments, "draft_model": str(draft)})
            print(row(case, path, sys.executable if case.engine == LLAMA else vllm), flush=True)
            if path.is_file():
                path.unlink()
    print(f"\nload average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
