"""Failed tokens and signatures by caller: who fails too often hears 429 instead."""

import time
from typing import Any

from fastapi import Request

from weft_gateway.domain.buckets import Buckets
from weft_gateway.domain.refused import Refused


class Failures:
    """Ten at once, then one in two seconds. A good token or signature is never held up."""

    def __init__(self) -> None:
        self._buckets = Buckets(size=10, every=2.0)

    def count(self, request: Request) -> None:
        """Count a failure. Raises Refused, 429, where there are too many."""
        client: Any = request.client
        caller, now = client.host if client else "local", time.monotonic()
        wait = self._buckets.wait(caller, now)
        if wait:
            raise too_often(wait)
        self._buckets.spend(caller, now)


def too_often(wait: float) -> Refused:
    """429, with when to come again."""
    seconds = max(1, round(wait + 0.5))
    return Refused(
        429, f"Too many tries; try again in {seconds} s.", code="too_often", headers={"retry-after": str(seconds)}
    )
