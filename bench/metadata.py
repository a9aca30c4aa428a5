"""What it takes until a model whose metadata card has just been published is listed with that card ready.

    python bench/metadata.py [--megabytes 10] [--rounds 5] [--plain]

A whole mesh over TLS with one worker. Each round deploys another model with llama.cpp, whose file is made here, with
random weights and a vocabulary so large that its `tokenizer.json` has the size: so the card is synthetic, and all else
is real. The worker makes the card's files of the header before its run is ready, and offers them. From the log's time
of that `run.ready` on: until the file lies whole and verified on the gateway's disk; until `GET /v1/models/{id}`, asked
all the time, says no more that template and tokenizer are being loaded; and until metadata-cache says that the file is
kept. The longest of those answers shows for how long the gateway stood still. Seconds of the processor are those of
each part meanwhile, of the user and of the system; the gateway's answers to the questions are in them. How much of that
makes template and tokenizer of the files is measured in this process.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import psutil
from mesh_cpu import cpu_of
from weft_prompts.model_prompts import ModelPrompts
from weft_prompts.tokens.gguf_slots import tokenizer_slots
from weft_testing.made_models import CONTEXT, WIDTH, byte_letters, vocabulary_of, write_model
from weft_testing.story import MeshUnderTest

LOADING = "its template and tokenizer are being loaded"
NOT_COMPARED = "were not held against its engine's yet"
"""What comes next: the first request's work."""
TOKENIZER = "tokenizer.json"
LONGEST = 12
"""Letters of a token."""
LOOK_S = 0.005
WITHIN_S = 180.0
PARTS = ("worker-1", "metadata-cache", "nats", "gateway")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds since the card was published."""

    here: float
    """on the gateway's disk"""
    listed: float
    kept: float
    """by the metadata-cache, and said so"""
    longest: float
    """of one answer to the question how the model stands"""
    cpu: Mapping[str, float]
    """of each part, until both are done"""
    size: int
    """bytes of `tokenizer.json`"""


def merges(count: int, seed: int) -> list[str]:
    """So many merges of a byte-level vocabulary, each of two tokens that there are by then."""
    draw = random.Random(seed)
    letters = byte_letters()
    tokens, made = dict.fromkeys(letters, ""), list[str]()
    grown = list(letters)
    while len(made) < count:
        left, right = draw.choice(grown), draw.choice(letters)
        if (token := left + right) not in tokens:
            tokens[token] = ""
            made.append(f"{left} {right}")
            if len(token) < LONGEST:
                grown.append(token)
    return made


def model(path: Path, count: int, seed: int) -> Path:
    """A file whose vocabulary has so many merges."""
    chosen = merges(count, seed)
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((len(vocabulary_of(chosen)), WIDTH), np.float32)
    return write_model(path, rows, rows, lambda tall, wide: draw.normal(0, 0.1, (tall, wide)), merges=chosen)


def count_for(size: int, folder: Path) -> int:
    """How many merges make a `tokenizer.json` of about so many bytes."""
    count = size // 40
    for _ in range(3):
        made = len(tokenizer_slots(model(folder / "tried.gguf", count, 1)).tokenizer)
        count = count * size // made
    return count


def loading_cpu_s(path: Path) -> float:
    """CPU seconds in which this process makes a template and a tokenizer of a file's slots."""
    slots = tokenizer_slots(path)
    began = time.process_time()
    ModelPrompts.of(slots.tokenizer, slots.configuration)
    return time.process_time() - began


def one(mesh: MeshUnderTest, name: str, path: Path) -> Round:
    """Deploy a model and look until it is listed and kept."""
    after = mesh.status()["log"]["position"]
    spec = {"source": {"kind": "path", "path": str(path)}, "engine": "llama.cpp", "context_tokens": CONTEXT}
    mesh.deploy(name, spec).raise_for_status()
    detail = f"{mesh.url}/v1/models/{name}"

    answers = list[float]()

    def stands() -> dict[str, Any]:
        asked = time.monotonic()
        answer = mesh.http.get(detail).raise_for_status().json()
        answers.append(time.monotonic() - asked)
        return answer["weft"]

    await_(lambda: stands()["ready"])
    processes = {part: psutil.Process(mesh.pid(part)) for part in PARTS}
    processes["worker-1"] = mesh.agents()[0]
    before = {part: cpu_of(process) for part, process in processes.items()}
    said = await_(lambda: None if (why := stands()["no_tokenizer"]) == LOADING else why or "made")
    listed = time.time()
    assert NOT_COMPARED in said, said
    kept = await_(lambda: fact_of(mesh, after, "artifact", "verified", TOKENIZER))
    cpu = {part: cpu_of(process) - before[part] for part, process in processes.items()}
    ready = fact_of(mesh, after, "run", "ready")
    began = float(ready["at"])
    file = next(each for each in ready["fact"]["metadata"] if each["name"] == TOKENIZER)
    (blob,) = (mesh.state / "services" / "gateway" / "metadata" / "blobs").rglob(file["blake3"])
    here, last = blob.stat().st_ctime - began, float(kept["at"]) - began
    return Round(here, listed - began, last, max(answers), cpu, int(file["size"]))


def await_(look: Callable[[], T | None]) -> T:
    """The first value that is true, looked for more often than stories do."""
    deadline = time.monotonic() + WITHIN_S
    while not (value := look()):
        assert time.monotonic() < deadline, "what is measured doesn't come"
        time.sleep(LOOK_S)
    return value


def fact_of(mesh: MeshUnderTest, after: int, kind: str, type_: str, name: str = "") -> dict[str, Any]:
    """The first commit behind a position with such a fact; empty: none."""
    found = mesh.facts(kind, type_, after)
    return next((each for each in found if not name or each["fact"]["file"]["name"] == name), dict[str, Any]())


def main() -> None:
    """Print each round, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="a mesh without TLS")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as made:
        folder = Path(made)
        count = count_for(int(given.megabytes * 1e6), folder)
        paths = [model(folder / f"model-{turn}.gguf", count, turn) for turn in range(given.rounds + 1)]
        loading = statistics.median(loading_cpu_s(path) for path in paths)
        found = list[Round]()
        with MeshUnderTest(folder, WEFT_TLS="never" if given.plain else "always") as mesh:
            for turn, path in enumerate(paths):
                each = one(mesh, f"made-{turn}", path)
                mesh.http.delete(f"{mesh.url}/api/models/made-{turn}").raise_for_status()
                if turn:  # the first loads code
                    found.append(each)
                    print(shown(f"round {turn}", [each]), flush=True)
        print(shown(f"medians, {statistics.median(each.size for each in found) / 1e6:.1f} MB", found))
        print(f"of the gateway's: {loading:.2f} s make template and tokenizer, {count} merges")


def shown(what: str, rounds: list[Round]) -> str:
    """Medians in a row."""

    def median(of: Callable[[Round], float]) -> float:
        return statistics.median(map(of, rounds))

    cpu = ", ".join(f"{part} {median(lambda each, part=part: each.cpu[part]):.2f}" for part in PARTS)
    return (
        f"{what}: here after {1e3 * median(lambda each: each.here):.0f} ms,"
        f" listed after {1e3 * median(lambda each: each.listed):.0f} ms,"
        f" kept after {1e3 * median(lambda each: each.kept):.0f} ms;"
        f" longest answer {1e3 * median(lambda each: each.longest):.0f} ms;"
        f" processor, s: {cpu}; load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
