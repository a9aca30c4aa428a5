"""How many devices a replica spans, by what somebody fixed: parallelism, a wished number, chosen devices."""

from collections.abc import Collection, Mapping
from typing import NamedTuple


class Spanning(NamedTuple):
    """What of it is fixed, as `Demand` has it."""

    devices: int | None = None
    stages: int | None = None
    wished: int | None = None
    by_hand: bool = False


class SpanningFault(ValueError):
    """What was fixed contradicts itself. The message is said of the field."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{field} {sentence}")
        self.field = field
        self.sentence = sentence


def spanning_of(
    tensor: int | None, stages: int | None, count: int | None, chosen: Mapping[str, Collection[int]] | None
) -> Spanning:
    """What follows from them. `chosen`: by node, the devices; None: any. Raises SpanningFault."""
    stages = None if stages == 1 else stages
    spans = (tensor or 1) * (stages or 1)
    if count is not None and count < spans:
        raise SpanningFault("gpus_per_replica", f"is {count}, and its parallelism needs {spans}: leave one out")
    there = sum(len(each) for each in chosen.values()) if chosen is not None else 0
    fixed = tensor is not None or stages is not None
    wanted = spans if fixed else count or 1
    if chosen is not None and there < wanted:
        raise SpanningFault("gpus", f"names {there} devices, and a replica is to have {wanted}")
    by_hand = chosen is not None and ((count is not None and not fixed) or (fixed and len(chosen) > 1))
    if by_hand:
        return Spanning(wanted, by_hand=True)
    return Spanning(tensor, stages, count)
