"""The cache of a model whose layers are of several sorts, as vLLM lays it out: in blocks of one size, by groups.

Read in vLLM 0.32 (`v1/kv_cache_interface.py`, `v1/core/kv_cache_utils.py`, `platforms/interface.py`,
`engine/arg_utils.py`; its page "Hybrid KV Cache Manager" tells why):

- Layers of one sort are divided into groups of equally many, as many as the rarest sort has, or as the commonest has
  where that is less than half as many again; a group that lacks layers is filled up. A block holds the same bytes
  whichever group has it.
- A layer with a window w keeps w − 1 tokens and those that are in flight, and one block more, since a window may begin
  within one. In flight is a step of each pipeline stage, and one more with asynchronous scheduling, which is so by
  default; a step is `max_num_batched_tokens`, 2,048 where nothing says so. Where a prompt is computed at once it keeps
  all of it.
- A layer with a state takes one block for a request, and two where prefixes are cached, which is so by default beside
  attention. Blocks are then made so long that a state fits into one.
- Chunked attention keeps every token: vLLM groups nothing then.
"""

from typing import Final, NamedTuple

from weft_contracts.engines import HeaderClaim
from weft_contracts.facts.shape import LayerCounts
from weft_contracts.facts.values import ModelSpec

from weft_placement.activations import step_tokens

_BLOCK: Final = "block_size"
_PREFIXES: Final = "enable_prefix_caching"
_CHUNKS: Final = "enable_chunked_prefill"
_ASYNC: Final = "async_scheduling"


class SortedCache(NamedTuple):
    """A model's cache by the sorts of its layers, in the type that it is kept in."""

    counts: LayerCounts
    whole: int
    """Bytes of one token, of all layers that keep every one."""
    windowed: int
    """The same of those with a window."""
    window: int
    """Tokens."""
    state: int
    """Bytes of one request, of all layers with a state."""

    @property
    def layer(self) -> int:
        """Bytes of one token in one layer; 0: no layer keeps tokens, or they keep different ones, which vLLM lays out
        otherwise."""
        each = {
            -(-size // count)
            for size, count in ((self.whole, self.counts.whole), (self.windowed, self.counts.windowed))
            if count
        }
        return each.pop() if len(each) == 1 else 0


def is_grouped(cache: SortedCache, formula: HeaderClaim) -> bool:
    """Whether the engine lays this cache out in groups of several sorts, or drops what lies before a window."""
    sorts = cache.counts.windowed + cache.counts.state
    return formula.block_tokens > 0 and sorts > 0 and cache.layer > 0


def grouped_bytes(spec: ModelSpec, formula: HeaderClaim, cache: SortedCache) -> int:
    """Of all requests that run at once, each with its full context."""
    counts, each, context = cache.counts, cache.layer, spec.context_tokens
    block = _block_tokens(spec, formula)
    if counts.state:
        state = -(-cache.state // counts.state)
        block *= -(-state // (block * each))
    there = [count for count in (counts.whole, counts.windowed, counts.state) if count]
    layers = max(there) if 2 * max(there) < 3 * min(there) else min(there)
    kept = min(cache.window - 1 + _tokens_in_flight(spec, formula), context)
    blocks = (
        -(-counts.whole // layers) * -(-context // block)
        + -(-counts.windowed // layers) * (-(-kept // block) + 1)
        + -(-counts.state // layers) * (1 if spec.engine_args.get(_PREFIXES) is False else 2)
    )
    return (blocks * spec.concurrency + 1) * block * each * layers  # one block stays empty


def _block_tokens(spec: ModelSpec, formula: HeaderClaim) -> int:
    given = spec.engine_args.get(_BLOCK)
    return given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else formula.block_tokens


def _tokens_in_flight(spec: ModelSpec, formula: HeaderClaim) -> int:
    if spec.weights.embeds or spec.engine_args.get(_CHUNKS) is False:
        return spec.context_tokens
    steps = (spec.layout.pipeline_parallel or 1) + (spec.engine_args.get(_ASYNC) is not False)
    return steps * step_tokens(spec, formula)
