"""What tokenizing a chat that grows to 60,000 tokens costs in CPU time, with and without the prefix cache.

    python bench/growing_chat.py [--model FILE.gguf] [--turns 10] [--tokens 60000] [--rounds 5]

Without a model the built-in one's vocabulary is taken.
"""

import argparse
import importlib.resources
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from weft_prompts.tokens.gguf_slots import tokenizer_slots
from weft_prompts.tokens.prefix_cache import PrefixCache
from weft_prompts.tokens.tokenizer import Tokenizer

WORDS = [
    "the",
    "a",
    "capital",
    "of",
    "France",
    "is",
    "Paris,",
    "and",
    "42",
    "is",
    "def",
    "f(x):",
    "return",
    "x",
    "+",
    "1\n",
    "日本",
    "don't",
    "know",
    "what",
    "you",
    "mean",
]
TINY = Path(str(importlib.resources.files("weft_tiny"))) / "shipped" / "weft-tiny.gguf"


def chat(tokenizer: Tokenizer, marks: tuple[str, str], turns: int, tokens: int) -> list[str]:
    """The prompt of each turn: all before it, a question, and the beginning of an answer."""
    draw, said, prompts = random.Random(18), "", list[str]()
    begin, end = marks
    for turn in range(turns):
        text = ""
        while tokenizer.count(said + text) < tokens * (turn + 1) // turns:
            text += " ".join(draw.choices(WORDS, k=400)) + "\n"
        said += f"{begin}user\n{text}{end}\n"
        prompts.append(f"{said}{begin}assistant\n")
        said += f"{begin}assistant\nYes.{end}\n"
    return prompts


def cpu(what: Callable[[], object]) -> float:
    """Seconds of this process."""
    start = time.process_time()
    what()
    return time.process_time() - start


def main() -> None:
    """Measure, and print one line a turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=TINY)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    tokenizer = Tokenizer(tokenizer_slots(asked.model).tokenizer)
    control = {str(each["content"]) for each in tokenizer.added if each["special"]}
    known = (("<|im_start|>", "<|im_end|>"), ("<|start_header_id|>", "<|eot_id|>"), ("<s>", "</s>"))
    marks = next(each for each in known if {*each} <= control)
    prompts = chat(tokenizer, marks, asked.turns, asked.tokens)
    whole = [list[float]() for _ in prompts]
    kept = [list[float]() for _ in prompts]
    for _ in range(asked.rounds):
        cache = PrefixCache()
        for turn, prompt in enumerate(prompts):
            assert tokenizer.encode(prompt) == PrefixCache().encode(tokenizer, prompt)
            whole[turn].append(cpu(lambda prompt=prompt: tokenizer.encode(prompt)))
            kept[turn].append(cpu(lambda prompt=prompt, cache=cache: cache.encode(tokenizer, prompt)))
    for turn, prompt in enumerate(prompts):
        without, with_it = statistics.median(whole[turn]), statistics.median(kept[turn])
        print(
            f"turn {turn + 1}: {tokenizer.count(prompt)} tokens, {without * 1e3:.1f} ms whole,"
            f" {with_it * 1e3:.1f} ms with the cache, {without / with_it:.1f} times less"
        )
    sums = [sum(map(statistics.median, each)) for each in (whole, kept)]
    print(f"all turns: {sums[0] * 1e3:.0f} ms and {sums[1] * 1e3:.0f} ms, {sums[0] / sums[1]:.1f} times less")


if __name__ == "__main__":
    main()
