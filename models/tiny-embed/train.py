"""Train the tiny embedder on the CPU and write it as a GGUF file with its tokenizer beside it.

From the root of the repository: `python -m models.tiny-embed.train FOLDER [--steps N] [--seed N]`.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from models.tiny.tokenizer import PADDING_ID, learn_tokenizer

from .export import NAME, export
from .network import Encoder, Shape, padded
from .pairs import Mix, batch


@dataclass(frozen=True)
class Recipe:
    """How to train."""

    steps: int = 400
    peak_rate: float = 2e-3
    warm_up: int = 50
    decay: float = 0.01
    temperature: float = 0.07
    seed: int = 0

    def rate(self, step: int) -> float:
        """Return the learning rate: a short rise, then a line down to almost nothing."""
        return self.peak_rate * min(1.0, (step + 1) / self.warm_up) * (1 - step / self.steps)


def loss_of(vectors: torch.Tensor, temperature: float) -> torch.Tensor:
    """Each text must find its other half among all others of the batch, both ways (InfoNCE)."""
    ones, others = vectors.chunk(2)
    scores = ones @ others.T / temperature
    right = torch.arange(len(ones))
    return (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2


def train(tokenizer: Tokenizer, shape: Shape, recipe: Recipe, log_every: int = 100) -> Encoder:
    """Train a new network on one thread, so that it comes out the same every time, and report the loss."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(recipe.seed)
    random, network, mix = Random(recipe.seed), Encoder(shape), Mix()
    print(f"{sum(weights.numel() for weights in network.parameters()):,} parameters", shape, recipe, flush=True)
    optimizer = torch.optim.AdamW(network.parameters(), lr=recipe.peak_rate, weight_decay=recipe.decay)
    started, total = time.monotonic(), 0.0
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step)
        pairs = batch(random, mix)
        texts = [pair.one for pair in pairs] + [pair.other for pair in pairs]
        rows = [entry.ids[: shape.context] for entry in tokenizer.encode_batch(texts)]
        loss = loss_of(network(*padded(rows, PADDING_ID)), recipe.temperature)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if (step + 1) % log_every == 0:
            print(f"step {step + 1} loss {total / log_every:.4f} {time.monotonic() - started:.0f} s", flush=True)
            total = 0.0
    return network


def main() -> None:
    """Learn the tokenizer, train and write."""
    defaults = Recipe()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("--steps", type=int, default=defaults.steps)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    options = parser.parse_args()
    started = time.monotonic()
    tokenizer = learn_tokenizer()
    shape = Shape(vocabulary=tokenizer.get_vocab_size())
    network = train(tokenizer, shape, Recipe(steps=options.steps, seed=options.seed))
    options.folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(options.folder / "tokenizer.json"))
    target = options.folder / f"{NAME}.gguf"
    export(network, shape, options.folder / "tokenizer.json", target)
    print(f"wrote {target}, {target.stat().st_size:,} bytes, after {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
