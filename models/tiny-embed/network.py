"""The network: a small BERT encoder in plain torch, as llama.cpp computes it; mean of the tokens, length one."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """The sizes of a network."""

    vocabulary: int
    hidden: int = 128
    heads: int = 2
    feed_forward: int = 256
    blocks: int = 2
    context: int = 1024
    norm_epsilon: float = 1e-12


class Block(nn.Module):
    """Attention in both directions, then feed-forward; each added to what came in and normed after."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.query, self.key, self.value, self.output = (nn.Linear(shape.hidden, shape.hidden) for _ in range(4))
        self.attention_norm = nn.LayerNorm(shape.hidden, shape.norm_epsilon)
        self.up = nn.Linear(shape.hidden, shape.feed_forward)
        self.down = nn.Linear(shape.feed_forward, shape.hidden)
        self.output_norm = nn.LayerNorm(shape.hidden, shape.norm_epsilon)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        q, k, v = (
            project(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None, :])
        x = self.attention_norm(x + self.output(mixed.transpose(1, 2).flatten(-2)))
        return self.output_norm(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    """The whole network: rows of token ids, padded where `seen` is False, to one vector of length 1 each."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.positions = nn.Embedding(shape.context, shape.hidden)
        self.kinds = nn.Embedding(2, shape.hidden)
        for table in (self.tokens, self.kinds):
            nn.init.normal_(table.weight, std=0.05)
        # Places behind the longest text of the training stay zero: there a longer text gets no noise.
        nn.init.zeros_(self.positions.weight)
        self.embedding_norm = nn.LayerNorm(shape.hidden, shape.norm_epsilon)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.blocks))

    def forward(self, ids: Tensor, seen: Tensor) -> Tensor:
        positions = self.positions.weight[: ids.shape[1]]
        x = self.embedding_norm(self.tokens(ids) + positions + self.kinds.weight[0])
        for block in self.blocks:
            x = block(x, seen)
        weights = seen[..., None].to(x.dtype)
        return F.normalize((x * weights).sum(1) / weights.sum(1), dim=-1)


def padded(rows: list[list[int]], padding: int) -> tuple[Tensor, Tensor]:
    """Rows of token ids as one matrix, and where it is no padding."""
    width = max(len(row) for row in rows)
    ids = torch.tensor([row + [padding] * (width - len(row)) for row in rows])
    seen = torch.tensor([[True] * len(row) + [False] * (width - len(row)) for row in rows])
    return ids, seen
