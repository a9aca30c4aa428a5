"""Nodes that nothing is placed on because the log can't be read about them."""

from collections.abc import Iterable, Mapping

from weft_contracts.subjects import Aggregate

SetAside = Mapping[str, str]
"""Nodes by id, and why nothing is placed on them."""
REASON = "is set aside: one of its events can't be read"


def set_aside(suspects: Iterable[Aggregate]) -> dict[str, str]:
    """The nodes among the aggregates that are set aside, and why each is passed over."""
    return {aggregate.key: REASON for aggregate in suspects if aggregate.kind in ("node", "machine")}
