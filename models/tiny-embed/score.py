"""Score a GGUF file: let every exam's queries find their texts through llama.cpp, inside this process.

From the root of the repository: `python -m models.tiny-embed.score [FILE.gguf] [--only WORD] [--show N]`.
"""

import argparse
import secrets
import time
from pathlib import Path
from typing import Any

import numpy as np
import xllamacpp

from .retrieval import Exam, exams

SHIPPED = Path(__file__).parent / "src" / "weft_tiny_embed" / "shipped" / "weft-tiny-embed.gguf"
_TEXTS_A_CALL = 64


class Embedder:
    """llama.cpp with one embedding model and one thread."""

    def __init__(self, model: Path) -> None:
        params: Any = xllamacpp.CommonParams()  # pyright: ignore[reportAttributeAccessIssue]
        params.model.path = str(model)
        params.embedding = True
        params.n_ctx = params.n_batch = params.n_ubatch = 1024
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.cache_ram_mib = 0
        params.verbosity = 0
        # Every server opens a port on loopback: without a key, any page in a browser could ask it.
        params.api_keys = [secrets.token_hex(16)]
        self._server: Any = xllamacpp.Server(params)  # pyright: ignore[reportAttributeAccessIssue]

    def vectors(self, texts: list[str]) -> np.ndarray:
        """Return one row of length 1 for each text."""
        rows: list[list[float]] = []
        for start in range(0, len(texts), _TEXTS_A_CALL):
            response = self._server.handle_embeddings({"input": texts[start : start + _TEXTS_A_CALL]})
            if "data" not in response:
                raise RuntimeError(f"llama.cpp refused: {response}")
            rows += [entry["embedding"] for entry in sorted(response["data"], key=lambda entry: entry["index"])]
        return np.array(rows, np.float32)


def failures(embedder: Embedder, exam: Exam) -> list[tuple[str, str]]:
    """Return the queries that found another text, with that text."""
    texts = embedder.vectors(exam.texts)
    found = (embedder.vectors([query for query, _ in exam.queries]) @ texts.T).argmax(1)
    return [
        (query, exam.texts[place]) for (query, right), place in zip(exam.queries, found, strict=True) if place != right
    ]


def main() -> None:
    """Print one row an exam, as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", default=SHIPPED)
    parser.add_argument("--only", default="", help="take only exams with this in their name")
    parser.add_argument("--show", type=int, default=0, help="print so many wrong finds of each exam")
    options = parser.parse_args()
    embedder = Embedder(options.model)
    print("| exam | queries | right |\n|---|---|---|")
    started, texts = time.monotonic(), 0
    for name, exam in exams().items():
        if options.only in name:
            wrong = failures(embedder, exam)
            texts += len(exam.texts) + len(exam.queries)
            share = 100 * (1 - len(wrong) / len(exam.queries))
            print(f"| {name} | {len(exam.queries)} | {share:.1f} % |", flush=True)
            for query, found in wrong[: options.show]:
                print(f"    {query!r} -> {found!r}")
    took = time.monotonic() - started
    print(f"\n{took:.0f} s, {texts / took:.0f} texts a second")


if __name__ == "__main__":
    main()
