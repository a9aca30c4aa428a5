"""Evictions computed again from the log and what their receipts read."""

from collections.abc import Mapping

from weft_contracts.facts.eviction import ModelUse, UsesRead
from weft_contracts.facts.replica import Evicted, KeptForNow
from weft_contracts.ids import ModelId, ReplicaId
from weft_fleet import ReplicaView

from weft_placement.claim import ClaimUnknown
from weft_placement.decide import Circumstances, demand_for
from weft_placement.demand import Demand
from weft_placement.eviction.decide import Eviction, decide_eviction
from weft_placement.filters.avoid import avoided
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy

_ROUNDED = 0.01
"""Seconds; of two figures that were rounded each."""


def eviction_differs(
    planned_fleet: PlannedFleet,
    waiting: ReplicaView,
    demand: Demand,
    policy: Policy,
    together: Mapping[ReplicaId, Evicted],
    ended: ReplicaId,
    set_aside: Mapping[str, str],
) -> str | None:
    """How the end of one replica comes out other than it was; None: it is the same. `together`: all that ended in one
    batch. `set_aside`: nodes that are passed
    over, and why. `planned_fleet`: at the receipt's position, with the room that was kept for others."""
    receipt = together[ended].receipt
    assert receipt is not None
    for use in receipt.read.uses:
        if contradiction := _contradiction(use):
            return contradiction
    read = _all_read(together)
    given = Circumstances(receipt.decided_at, receipt.seed)
    avoid = {**set_aside, **avoided(waiting.avoid)}
    again = decide_eviction(planned_fleet, waiting, demand, policy, read, given, avoid)
    if not isinstance(again, Eviction):
        return "nothing would end for what waits" if again is None else f"nothing would end: {again.why}"
    if again.facts.keys() != together.keys():
        return f"{', '.join(again.facts)} would end, and {', '.join(together)} did"
    if again.facts[ended] == together[ended]:
        return None
    now, was = again.facts[ended].model_dump(), together[ended].model_dump()
    return "; ".join(f"{name} is {now[name]!r}, and was {was[name]!r}" for name in was if now[name] != was[name])[:1000]


def kept_differs(
    planned_fleet: PlannedFleet,
    waiting: ReplicaView,
    policy: Policy,
    given: Circumstances,
    kept: KeptForNow,
    set_aside: Mapping[str, str],
) -> str | None:
    """How the reason why nothing ends yet comes out other than it was; None: it is the same."""
    try:
        demand = demand_for(planned_fleet.fleet, waiting, policy)
    except ClaimUnknown as error:
        return str(error)
    avoid = {**set_aside, **avoided(waiting.avoid)}
    again = decide_eviction(planned_fleet, waiting, demand, policy, kept.read, given, avoid)
    why = again.why if isinstance(again, KeptForNow) else "something ends" if again is not None else "no end would help"
    return None if why == kept.why else f"{why!r}, and the log says {kept.why!r}"


def _all_read(together: Mapping[ReplicaId, Evicted]) -> UsesRead:
    """What all of them read: each has the gateways' figures of its own model alone."""
    found: dict[ModelId, ModelUse] = {}
    reads = [fact.receipt.read for fact in together.values() if fact.receipt is not None]
    for use in (use for read in reads for use in read.uses):
        if use.gateways or use.model not in found:
            found[use.model] = use
    return UsesRead(rule=reads[0].rule, uses=tuple(found.values()))


def _contradiction(use: ModelUse) -> str | None:
    """Where a model's figure isn't what gateways said, as far as they stand there."""
    if not use.gateways:
        return None
    if use.known and not all(reading.known for reading in use.gateways):
        return f"the use of {use.model} counts as known, and a gateway's isn't"
    if not use.idle_s:
        return None
    if any(reading.running or reading.waiting or reading.loading for reading in use.gateways):
        return f"{use.model} counts as idle, and a gateway has something to do for it"
    rested = [reading.age_s + reading.idle_s for reading in use.gateways if reading.idle_s]
    if rested and use.idle_s > min(rested) + _ROUNDED:
        return f"{use.model} counts as idle for {use.idle_s:g} s, and a gateway says {min(rested):g} s"
    return None
