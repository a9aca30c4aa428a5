"""Why here, and why not there: every node's answer about one replica, computed again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.values import Receipt
from weft_contracts.ids import ReplicaId
from weft_contracts.subjects import replica as replica_aggregate
from weft_contracts.suspects import Suspects
from weft_fleet import Fleet, ReplicaView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.chosen_policy import chosen_policy
from weft_placement.claim import ClaimUnknown
from weft_placement.decide import demand_for
from weft_placement.eviction import give_room, hold_rooms
from weft_placement.node_answers import NodeAnswer, answers_of
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import BadPolicy, Policy, parse_policy
from weft_placement.set_aside import SetAside
from weft_placement.set_aside import set_aside as set_aside_of


@dataclass(frozen=True, slots=True)
class Explanation:
    """One replica's placement with every node's answer, the best first."""

    replica: ReplicaId
    model_name: str
    position: int
    """The log position at which it was computed."""
    policy: str
    outcome: str
    """One sentence."""
    answers: tuple[NodeAnswer, ...]
    receipt: Receipt | None
    """The receipt of the decision in the log; None where none was made yet."""
    recomputed: bool = True
    """False: the answers are those that the receipt kept, and `refusals` counts the other nodes."""
    refusals: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many nodes refused for which reason, where their answers weren't computed again."""


class NotInTheLog(LookupError):
    """The log knows no such replica."""


def explain(
    fleet: Fleet, replica_id: ReplicaId, policy: Policy | None = None, set_aside: SetAside | None = None
) -> Explanation:
    """Every node's answer at the fleet's position, as if the replica itself held nothing.

    Without a policy, the one that the replica's own receipt names, or by which it would be placed. `set_aside`: nodes
    that nothing is placed on, and why. Raises NotInTheLog.
    """
    return _explain(fleet, PlannedFleet(fleet), _known(fleet, replica_id), policy, set_aside=set_aside)


def explain_decision(commits: Iterable[Recorded], replica_id: ReplicaId) -> Explanation:
    """Every node's answer as the scheduler saw it when it last decided about the replica.

    `commits` is the log from its beginning. Placements of the same batch that came before are
    counted. Raises NotInTheLog.
    """
    log = list(commits)
    decision = last_decision(log, replica_id)
    if decision is None:
        fleet, suspects = _folded(log)
        return explain(fleet, replica_id, set_aside=set_aside_of(suspects.why))
    fact, sequence = decision
    fleet, suspects = _folded(commit for commit in log if commit.sequence <= fact.receipt.position)
    later = (commit for commit in log if commit.sequence < sequence)
    return explain_as_of(fleet, later, replica_id, fact, set_aside_of(suspects.why))


def explain_as_of(
    fleet: Fleet,
    later: Iterable[Recorded],
    replica_id: ReplicaId,
    decision: Placed | Unplaceable,
    set_aside: SetAside | None = None,
) -> Explanation:
    """Every node's answer as the scheduler saw it. `fleet`: at the position of the decision's receipt, as `set_aside`
    is; `later`: the commits between that and the decision. Raises NotInTheLog."""
    planned_fleet = PlannedFleet(fleet)
    hold_rooms(planned_fleet, decision.receipt.decided_at)
    for commit in later:
        if commit.sequence > decision.receipt.position:
            _count_batch_mate(planned_fleet, commit, decision.receipt)
    return _explain(fleet, planned_fleet, _known(fleet, replica_id), None, decision, set_aside)


def explain_by_receipt(fleet: Fleet, replica_id: ReplicaId, decision: Placed | Unplaceable) -> Explanation:
    """What the decision's receipt kept: its best candidates, and how many nodes refused for which reason. `fleet`: of
    any later position, for names. Raises NotInTheLog."""
    replica, receipt = _known(fleet, replica_id), decision.receipt
    held = {m.node: m.devices for m in decision.members} if isinstance(decision, Placed) else {}
    answers: list[NodeAnswer] = []
    for each in receipt.candidates:
        node, claims = fleet.nodes.get(each.node), held.get(each.node, ())
        answers.append(
            NodeAnswer(
                node=each.node,
                name=node.name if node is not None else each.node,
                refusal=None,
                devices=each.devices,
                bytes=tuple(claim.bytes for claim in claims if claim.index in each.devices),
                host=sum(claim.bytes for claim in claims if claim.index not in each.devices),
                score=each.score,
                scores=each.scores,
                chosen=each.node in held,
            )
        )
    return Explanation(
        replica=replica_id,
        model_name=fleet.models[replica.model].name,
        position=receipt.position,
        policy=receipt.policy,
        outcome=_outcome(fleet, decision, ()),
        answers=tuple(answers),
        receipt=receipt,
        recomputed=False,
        refusals=receipt.refusals,
    )


def _explain(
    fleet: Fleet,
    planned_fleet: PlannedFleet,
    replica: ReplicaView,
    policy: Policy | None,
    decision: Placed | Unplaceable | None = None,
    set_aside: SetAside | None = None,
) -> Explanation:
    decision = decision or replica.placed or replica.unplaceable
    receipt = decision.receipt if decision is not None else None
    policy = policy or policy_of(receipt) or chosen_policy(fleet, fleet.spec_of(replica)[1])
    members = decision.members if isinstance(decision, Placed) else ()
    chosen = frozenset(member.node for member in members)
    answers: tuple[NodeAnswer, ...] = ()
    problem = ""
    try:
        ranking = CandidateRanking(demand_for(fleet, replica, policy), policy)
    except ClaimUnknown as error:
        problem = str(error)
    else:
        planned_fleet.release(replica)
        give_room(planned_fleet, replica)
        ranking.sync(planned_fleet)
        answers = answers_of(planned_fleet, ranking, replica, chosen, set_aside)
    return Explanation(
        replica=replica.id,
        model_name=fleet.models[replica.model].name,
        position=fleet.position,
        policy=policy.text,
        outcome=problem or _outcome(fleet, decision, answers),
        answers=answers,
        receipt=receipt,
    )


def _outcome(fleet: Fleet, decision: Placed | Unplaceable | None, answers: tuple[NodeAnswer, ...]) -> str:
    match decision:
        case Placed(members=members):
            names = [fleet.nodes[m.node].name if m.node in fleet.nodes else m.node for m in members]
            return f"placed on {' and '.join(names)}"
        case Unplaceable(reason=reason, kept=kept):
            return reason if kept is None else f"{reason}; {kept.why}"
        case None:
            takers = sum(answer.refusal is None for answer in answers)
            return f"not decided yet; {takers} of {len(answers)} nodes could take it"


def policy_of(receipt: Receipt | None) -> Policy | None:
    """The policy that a receipt names; None without a receipt, or for a text that names none."""
    try:
        return None if receipt is None else parse_policy(receipt.policy)
    except BadPolicy:
        return None


def _known(fleet: Fleet, id: ReplicaId) -> ReplicaView:
    view = fleet.replicas.get(id)
    if view is None:
        raise NotInTheLog(f"the log knows no replica {id}")
    return view


def _folded(commits: Iterable[Recorded]) -> tuple[Fleet, Suspects]:
    fleet, suspects = Fleet(), Suspects()
    for commit in commits:
        fleet.apply(suspects.read(commit))
    return fleet, suspects


def last_decision(log: Sequence[Recorded], id: ReplicaId) -> tuple[Placed | Unplaceable, int] | None:
    """The last placement of a replica, or that there is none, and the sequence of its commit."""
    for commit in reversed(log):
        if commit.aggregate == replica_aggregate(id):
            for fact in commit.facts:
                if isinstance(fact, Placed | Unplaceable):
                    return fact, commit.sequence
    return None


def _count_batch_mate(planned_fleet: PlannedFleet, commit: Recorded, receipt: Receipt) -> None:
    """Count a placement that the same round had made before this one."""
    if commit.aggregate.kind != "replica":
        return
    for fact in commit.facts:
        if isinstance(fact, Placed) and _same_round(fact.receipt, receipt):
            mate = planned_fleet.fleet.replicas.get(ReplicaId(commit.aggregate.key))
            if mate is not None:
                planned_fleet.plan(mate, fact.members, commit.cause)


def _same_round(one: Receipt, other: Receipt) -> bool:
    return (one.position, one.seed, one.decided_at) == (other.position, other.seed, other.decided_at)
