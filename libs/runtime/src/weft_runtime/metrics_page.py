"""`/metrics`, written so that whoever else the loop serves waits for none of it: a few hundred lines at a time.

The library writes all of it at once: of a page of 16,000 lines, in half a second in which every stream of tokens would
stand still (`bench/metrics.py`).
"""

import asyncio
from collections.abc import Iterable, Iterator

from prometheus_client import REGISTRY, CollectorRegistry, disable_created_metrics, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

LINES_AT_ONCE = 250
_HEAD = 2
"""Lines before a family's samples: what it is, and of which kind."""

# Each counter's and histogram's birth is a series of its own, and nobody asks for it.
disable_created_metrics()


class _One(Collector):
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        yield self._family


async def metrics_page(registry: CollectorRegistry = REGISTRY) -> bytes:
    """All that the registry has, in Prometheus' text format. Between its pieces the loop does other work."""
    pieces: list[bytes] = []
    for family in registry.collect():
        for piece in _pieces(family):
            pieces.append(piece)
            await asyncio.sleep(0)
    return b"".join(pieces)


def _pieces(family: Metric) -> Iterator[bytes]:
    samples = family.samples
    for start in range(0, max(1, len(samples)), LINES_AT_ONCE):
        family.samples = samples[start : start + LINES_AT_ONCE]
        text = generate_latest(_One(family))
        yield text.split(b"\n", _HEAD)[_HEAD] if start else text
