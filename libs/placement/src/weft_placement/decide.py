"""One placement: the best offer, or why there is none, with the receipt of the decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from weft_contracts.facts.values import Member, Receipt
from weft_contracts.ids import ReplicaId

from weft_placement.board import Board, NoRoom
from weft_placement.claim import ClaimUnknown
from weft_placement.demand import Demand, demand_of
from weft_placement.filters.avoid import avoided
from weft_placement.fleet import Fleet, ReplicaView
from weft_placement.outlook import Outlook
from weft_placement.policy import Policy
from weft_placement.verdict import Offer

CANDIDATES_KEPT = 8
REASONS_KEPT = 16
"""Reasons in a receipt; what is rarer is counted together."""
OTHER_REASONS = "refuses for another reason"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a replica goes."""

    replica: ReplicaId
    members: tuple[Member, ...]
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class NoPlace:
    """Why it goes nowhere now."""

    replica: ReplicaId
    reason: str
    """A sentence for people."""
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What reaches a decision from outside: time (seconds since the epoch) and a random seed."""

    policy: Policy
    now: float
    seed: int


def demand_for(fleet: Fleet, replica: ReplicaView, policy: Policy) -> Demand:
    """What the replica's revision asks of a node. Raises ClaimUnknown."""
    spec = fleet.spec_of(replica)[1]
    return demand_of(replica.model, replica.revision, spec, policy.slots)


def decide_placement(fleet: Fleet, replica_id: ReplicaId, policy: Policy, now: float, seed: int) -> Placement | NoPlace:
    """Place one replica by asking every node once. Raises KeyError for an unknown replica.

    Who decides often keeps a Board and calls `choose`.
    """
    replica = fleet.replicas[replica_id]
    given = Circumstances(policy, now, seed)
    try:
        board = Board(demand_for(fleet, replica, policy), policy)
    except ClaimUnknown as error:
        return no_place(fleet, replica, given, NoRoom(str(error), {}))
    outlook = Outlook(fleet)
    outlook.lift(replica)
    board.sync(outlook)
    return choose(fleet, replica, board, given)


def choose(
    fleet: Fleet,
    replica: ReplicaView,
    board: Board,
    given: Circumstances,
    set_aside: Mapping[str, str] | None = None,
) -> Placement | NoPlace:
    """The best offer of a board that is in step with the fleet.

    `set_aside` names nodes that must be passed over beside those that the replica avoids, and why.
    """
    avoid = {**(set_aside or {}), **avoided(replica.avoid)}
    best = tuple(islice(board.offers(avoid), CANDIDATES_KEPT))
    if not best:
        return no_place(fleet, replica, given, board.no_room(avoid))
    first = best[0]
    members = (Member(node=first.node, rank=0, devices=first.devices),)
    room = NoRoom("", board.refusals(avoid))
    rungs = board.rungs_below(first.rung, avoid)
    return Placement(replica.id, members, receipt(fleet, replica, given, room, best, rungs))


def no_place(fleet: Fleet, replica: ReplicaView, given: Circumstances, room: NoRoom) -> NoPlace:
    """No place, with its receipt."""
    return NoPlace(replica.id, room.reason, receipt(fleet, replica, given, room, ()))


def receipt(
    fleet: Fleet,
    replica: ReplicaView,
    given: Circumstances,
    room: NoRoom,
    best: tuple[Offer, ...],
    rungs: tuple[str, ...] = (),
) -> Receipt:
    """The record of one decision."""
    return Receipt(
        position=fleet.position,
        policy=given.policy.text,
        policy_digest=given.policy.digest,
        seed=given.seed,
        trigger=replica.cause.causation_id or "",
        decided_at=given.now,
        refusals=few(room.refusals),
        candidates=tuple(offer.candidate for offer in best),
        rungs=rungs,
    )


def few(refusals: Mapping[str, int]) -> dict[str, int]:
    """The refusals as a receipt keeps them."""
    kept = dict(list(refusals.items())[:REASONS_KEPT])
    rest = sum(refusals.values()) - sum(kept.values())
    return {**kept, OTHER_REASONS: rest} if rest else kept
