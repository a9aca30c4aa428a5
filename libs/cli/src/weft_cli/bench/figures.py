"""From what each request saw to a level's figures. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """One request. Times are seconds of one clock; None: it didn't come to that."""

    sent: float
    first: float | None = None
    """When the first piece of the answer came."""
    last: float | None = None
    """When the last one that came did."""
    pieces: int = 0
    tokens: int | None = None
    """As the server counts them; None where it doesn't say, or was cut off."""
    error: str | None = None
    whole: bool = False
    """It came to its proper end."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One level. Times are milliseconds; None: nothing to tell them from."""

    streams: int
    seconds: float
    requests: int
    """That came to their end."""
    errors: int
    tokens: int
    tokens_per_second: float
    tokens_per_second_and_stream: float
    first_token_ms_p50: float | None
    first_token_ms_p95: float | None
    between_tokens_ms_p50: float | None
    reasons: dict[str, int]
    """How often each error came, the most frequent first."""


def figures(streams: int, seconds: float, samples: Sequence[Sample]) -> Figures:
    """A level's figures. A request that the level's end cut off counts with the tokens that came.

    Where a server merges several tokens into a piece, or splits one, its counts of whole answers tell by how much.
    """
    counted = [each for each in samples if each.tokens is not None and each.pieces]
    pieces = sum(each.pieces for each in counted)
    ratio = sum(each.tokens or 0 for each in counted) / pieces if pieces else 1.0
    tokens = round(sum(each.pieces * ratio if each.tokens is None else each.tokens for each in samples))
    firsts = [1000 * (each.first - each.sent) for each in samples if each.first is not None]
    gaps = [
        1000 * (each.last - each.first) / (each.pieces * ratio - 1)
        for each in samples
        if each.first is not None and each.last is not None and each.pieces > 1 and each.pieces * ratio > 1
    ]
    reasons = Counter(each.error for each in samples if each.error is not None)
    return Figures(
        streams=streams,
        seconds=round(seconds, 3),
        requests=sum(each.whole for each in samples),
        errors=sum(reasons.values()),
        tokens=tokens,
        tokens_per_second=round(tokens / seconds, 1) if seconds > 0 else 0.0,
        tokens_per_second_and_stream=round(tokens / seconds / streams, 1) if seconds > 0 else 0.0,
        first_token_ms_p50=percentile(firsts, 50),
        first_token_ms_p95=percentile(firsts, 95),
        between_tokens_ms_p50=percentile(gaps, 50),
        reasons=dict(reasons.most_common()),
    )


def percentile(values: Sequence[float], percent: int) -> float | None:
    """The smallest value that at least so many per cent of the values don't exceed (nearest rank)."""
    if not values:
        return None
    rank = -(-len(values) * percent // 100)
    return round(sorted(values)[max(0, rank - 1)], 2)
