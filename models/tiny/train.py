"""Train the tiny model on the CPU and write it as a Hugging Face folder.

From the root of the repository: `python -m models.tiny.train FOLDER [--steps N] [--seed N] [--threads N]`.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn

from models.tiny.folder import save
from models.tiny.network import Llama, Shape
from models.tiny.samples import conversation
from models.tiny.tokenizer import NOT_TRAINED, PADDING_ID, encode, encode_plain, learn_tokenizer


@dataclass(frozen=True)
class Recipe:
    """How to train."""

    steps: int = 7000
    batch: int = 32
    peak_rate: float = 3e-3
    warm_up: int = 100
    flat: float = 0.3
    decay: float = 0.05
    clip: float = 1.0
    plain: float = 0.03
    seed: int = 0
    threads: int = 1

    def rate(self, step: int) -> float:
        """Return the learning rate: a short rise, a plateau, then a line down to almost nothing."""
        rise = min(1.0, (step + 1) / self.warm_up)
        fallen = max(0.0, step / self.steps - self.flat) / (1 - self.flat)
        return self.peak_rate * rise * (1 - 0.99 * fallen)


_POOLED_BATCHES = 16
"""Samples are sorted by length within this many batches, so that little is padding."""


def batches(tokenizer: Tokenizer, recipe: Recipe) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield tokens and labels without end."""
    random = Random(recipe.seed)

    def sample() -> tuple[list[int], list[int]]:
        messages = conversation(random)
        if random.random() < recipe.plain:
            return encode_plain(tokenizer, messages[-1]["content"])
        return encode(tokenizer, messages)

    while True:
        pool = sorted((sample() for _ in range(_POOLED_BATCHES * recipe.batch)), key=lambda s: len(s[0]))
        starts = list(range(0, len(pool), recipe.batch))
        random.shuffle(starts)
        for start in starts:
            rows = pool[start : start + recipe.batch]
            width = max(len(tokens) for tokens, _ in rows)
            yield (
                torch.tensor([tokens + [PADDING_ID] * (width - len(tokens)) for tokens, _ in rows]),
                torch.tensor([labels + [NOT_TRAINED] * (width - len(labels)) for _, labels in rows]),
            )


def make_optimizer(network: Llama, recipe: Recipe) -> torch.optim.Optimizer:
    """Return AdamW that decays matrices and leaves norms alone."""
    matrices = [weights for weights in network.parameters() if weights.dim() == 2]
    norms = [weights for weights in network.parameters() if weights.dim() < 2]
    groups = [{"params": matrices, "weight_decay": recipe.decay}, {"params": norms, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.peak_rate, betas=(0.9, 0.98), fused=True)


def loss_of(network: Llama, tokens: Tensor, labels: Tensor) -> Tensor:
    """Return the mean loss; scores are computed only where a label asks for them."""
    hidden, wanted = network(tokens[:, :-1]), labels[:, 1:]
    trained = wanted != NOT_TRAINED
    return F.cross_entropy(network.logits(hidden[trained]), wanted[trained])


def train(tokenizer: Tokenizer, shape: Shape, recipe: Recipe, log_every: int = 250) -> Llama:
    """Train a new network and report the loss as it goes."""
    torch.set_num_threads(recipe.threads)
    torch.manual_seed(recipe.seed)
    network = Llama(shape)
    parameters = sum(weights.numel() for weights in network.parameters())
    print(f"{parameters:,} parameters", shape, recipe, flush=True)
    optimizer = make_optimizer(network, recipe)
    source = batches(tokenizer, recipe)
    started, total = time.monotonic(), 0.0
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step)
        loss = loss_of(network, *next(source))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), recipe.clip)
        optimizer.step()
        total += loss.item()
        if (step + 1) % log_every == 0:
            print(f"step {step + 1} loss {total / log_every:.4f} {time.monotonic() - started:.0f} s", flush=True)
            total = 0.0
    return network


def main() -> None:
    """Learn the tokenizer, train and save."""
    defaults = Recipe()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the Hugging Face files go")
    parser.add_argument("--steps", type=int, default=defaults.steps)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--threads", type=int, default=defaults.threads)
    options = parser.parse_args()
    started = time.monotonic()
    tokenizer = learn_tokenizer()
    shape = Shape(vocabulary=tokenizer.get_vocab_size())
    network = train(tokenizer, shape, Recipe(steps=options.steps, seed=options.seed, threads=options.threads))
    save(options.folder, network, shape, tokenizer)
    print(f"saved {options.folder} after {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
