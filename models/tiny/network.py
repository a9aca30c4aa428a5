"""The network: a Llama in plain torch, with the parameter names of Hugging Face's."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """The sizes of a network. Input and output embeddings are one matrix."""

    vocabulary: int
    hidden: int = 128
    heads: int = 2
    feed_forward: int = 352
    blocks: int = 3
    context: int = 1024
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5

    @property
    def head(self) -> int:
        """Return the width of one attention head; vLLM needs at least 32."""
        return self.hidden // self.heads


def _rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn each head's pairs by their position; a pair is an entry of each half."""
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((-second, first), dim=-1) * sines


class Attention(nn.Module):
    """Causal self-attention with rotary positions."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.q_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.k_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.v_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.o_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        q, k, v = (
            project(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = _rotate(q, cosines, sines), _rotate(k, cosines, sines)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))


class FeedForward(nn.Module):
    """The gated feed-forward part of a block."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.feed_forward, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.feed_forward, bias=False)
        self.down_proj = nn.Linear(shape.feed_forward, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    """One block: attention, then feed-forward, each added to what came in."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden, eps=shape.norm_epsilon)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, eps=shape.norm_epsilon)
        self.mlp = FeedForward(shape)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cosines, sines)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """The whole network: tokens to hidden states; `logits` turns those into scores of next tokens."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.blocks))
        self.norm = nn.RMSNorm(shape.hidden, eps=shape.norm_epsilon)
        self._start_small(shape)
        frequencies = shape.rope_base ** (-torch.arange(0, shape.head, 2) / shape.head)
        angles = torch.outer(torch.arange(shape.context), frequencies).repeat(1, 2)
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)

    def _start_small(self, shape: Shape) -> None:
        """Set the first weights; what writes into the residual stream begins smallest."""
        spread = 1 / math.sqrt(shape.hidden)
        for name, weights in self.named_parameters():
            if "embed" in name:
                nn.init.normal_(weights, std=0.04)
            elif weights.dim() == 2:
                writes = "o_proj" in name or "down_proj" in name
                nn.init.normal_(weights, std=spread * (0.3 if writes else 0.7))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the hidden states after the last block, one a token."""
        x = self.embed_tokens(tokens)
        length = tokens.shape[1]
        for block in self.layers:
            x = block(x, self.cosines[:length], self.sines[:length])
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the scores of the next token for hidden states."""
        return hidden @ self.embed_tokens.weight.T
