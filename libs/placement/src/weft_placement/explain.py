"""Why here, and why not there: every node's answer about one replica, computed again."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from weft_contracts.commit import Recorded
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.values import Receipt
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.subjects import replica as replica_aggregate
from weft_fleet import Fleet, NodeAssignments, NodeView, ReplicaView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.claim import ClaimUnknown
from weft_placement.decide import demand_for
from weft_placement.filters.avoid import avoided
from weft_placement.filters.disk import disk, told_room
from weft_placement.fit import LADDER
from weft_placement.node_evaluator import Candidate, Rank, Refusal
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import BadPolicy, Policy, parse_policy


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """One node's answer."""

    node: NodeId
    name: str
    refusal: str | None
    """Why not, said of the node; None where it could take the replica."""
    rung: str = ""
    devices: tuple[int, ...] = ()
    score: float = 0.0
    scores: Mapping[str, float] | None = None
    chosen: bool = False
    bytes: tuple[int, ...] = ()
    """What it would claim of each of these devices."""
    host: int = 0
    """What it would claim of the machine's memory beside them, in bytes."""


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


class NotInTheLog(LookupError):
    """The log knows no such replica."""


def explain(fleet: Fleet, replica_id: ReplicaId, policy: Policy | None = None) -> Explanation:
    """Every node's answer at the fleet's position, as if the replica itself held nothing.

    Without a policy, the one that the replica's own receipt names. Raises NotInTheLog.
    """
    return _explain(fleet, PlannedFleet(fleet), _known(fleet, replica_id), policy)


def explain_decision(commits: Iterable[Recorded], replica_id: ReplicaId) -> Explanation:
    """Every node's answer as the scheduler saw it when it last decided about the replica.

    `commits` is the log from its beginning. Placements of the same batch that came before are
    counted. Raises NotInTheLog.
    """
    log = list(commits)
    decision = _last_decision(log, replica_id)
    if decision is None:
        return explain(_folded(log), replica_id)
    fact, sequence = decision
    fleet = _folded(commit for commit in log if commit.sequence <= fact.receipt.position)
    planned_fleet = PlannedFleet(fleet)
    for commit in log:
        if fact.receipt.position < commit.sequence < sequence:
            _count_batch_mate(planned_fleet, commit, fact.receipt)
    return _explain(fleet, planned_fleet, _known(fleet, replica_id), None, fact)


def _explain(
    fleet: Fleet,
    planned_fleet: PlannedFleet,
    replica: ReplicaView,
    policy: Policy | None,
    decision: Placed | Unplaceable | None = None,
) -> Explanation:
    decision = decision or replica.placed or replica.unplaceable
    receipt = decision.receipt if decision is not None else None
    policy = policy or policy_of(receipt)
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
        ranking.sync(planned_fleet)
        answers = answers_of(planned_fleet, ranking, replica, chosen)
    return Explanation(
        replica=replica.id,
        model_name=fleet.models[replica.model].name,
        position=fleet.position,
        policy=policy.text,
        outcome=problem or _outcome(fleet, decision, answers),
        answers=answers,
        receipt=receipt,
    )


def answers_of(
    planned_fleet: PlannedFleet, ranking: CandidateRanking, replica: ReplicaView, chosen: Collection[str]
) -> tuple[NodeAnswer, ...]:
    """Every node's answer on a ranking that is in step, the best first."""
    avoid = avoided(replica.avoid)
    candidates: list[tuple[Rank, NodeAnswer]] = []
    refusals: list[tuple[int, str, NodeAnswer]] = []
    for id, node in planned_fleet.fleet.nodes.items():
        evaluation = ranking.evaluation(id)
        no = avoid.get(id)
        match evaluation:
            case None:
                continue
            case Candidate() if no is None:
                answer = NodeAnswer(
                    node=id,
                    name=node.name,
                    refusal=None,
                    rung=LADDER[evaluation.rung][0],
                    devices=tuple(device.index for device in evaluation.devices),
                    bytes=tuple(device.bytes for device in evaluation.devices),
                    host=evaluation.host.bytes if evaluation.host is not None else 0,
                    score=evaluation.score,
                    scores=evaluation.scores,
                    chosen=id in chosen,
                )
                candidates.append((evaluation.rank, answer))
            case Candidate():
                refusals.append((0, id, NodeAnswer(id, node.name, no, chosen=id in chosen)))
            case Refusal(stage=stage, reason=reason):
                answer = NodeAnswer(
                    id,
                    node.name,
                    no or _with_room(node, planned_fleet.assigned(id), ranking, reason),
                    chosen=id in chosen,
                )
                refusals.append((0 if no else -stage, id, answer))
    ordered = [answer for _, answer in sorted(candidates, key=lambda pair: pair[0])]
    return (*ordered, *(answer for _, _, answer in sorted(refusals, key=lambda item: item[:2])))


def _with_room(node: NodeView, assigned: NodeAssignments, ranking: CandidateRanking, reason: str) -> str:
    """A node's reason with what its own disk has, where that was it."""
    if reason != disk(node, assigned, ranking.demand):
        return reason
    return f"{reason}; it has {told_room(node, assigned, ranking.demand.files)}"


def _outcome(fleet: Fleet, decision: Placed | Unplaceable | None, answers: tuple[NodeAnswer, ...]) -> str:
    match decision:
        case Placed(members=members):
            names = [fleet.nodes[m.node].name if m.node in fleet.nodes else m.node for m in members]
            return f"placed on {' and '.join(names)}"
        case Unplaceable(reason=reason):
            return reason
        case None:
            takers = sum(answer.refusal is None for answer in answers)
            return f"not decided yet; {takers} of {len(answers)} nodes could take it"


def policy_of(receipt: Receipt | None) -> Policy:
    """The policy that a receipt names; the default one without a receipt, or for a text that names none."""
    try:
        return Policy() if receipt is None else parse_policy(receipt.policy)
    except BadPolicy:
        return Policy()


def _known(fleet: Fleet, id: ReplicaId) -> ReplicaView:
    view = fleet.replicas.get(id)
    if view is None:
        raise NotInTheLog(f"the log knows no replica {id}")
    return view


def _folded(commits: Iterable[Recorded]) -> Fleet:
    fleet = Fleet()
    for commit in commits:
        fleet.apply(commit)
    return fleet


def _last_decision(log: list[Recorded], id: ReplicaId) -> tuple[Placed | Unplaceable, int] | None:
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
