"""What each node answers about one replica, for people: its place there with the scores, or the reason for its no."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import itemgetter

from weft_contracts.ids import NodeId
from weft_fleet import NodeView, ReplicaView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.filters.avoid import avoided
from weft_placement.fit import LADDER, SEVERAL_NODES
from weft_placement.group import Group, Part
from weft_placement.node_evaluator import Candidate, Refusal
from weft_placement.own_reasons import with_own
from weft_placement.planned_fleet import PlannedFleet


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


def answers_of(
    planned_fleet: PlannedFleet,
    ranking: CandidateRanking,
    replica: ReplicaView,
    chosen: Collection[str],
    set_aside: Mapping[str, str] | None = None,
) -> tuple[NodeAnswer, ...]:
    """Every node's answer on a ranking that is in step, the best first. `set_aside`: as `choose` has it."""
    avoid = {**(set_aside or {}), **avoided(replica.avoid)}
    best = ranking.best(avoid)
    grouped = {part.node: part for part in best.parts} if isinstance(best, Group) else {}
    candidates: list[tuple[int, NodeAnswer]] = []
    taking = {each.node: (place, each) for place, each in enumerate(ranking.candidates(avoid))}
    refusals: list[tuple[int, str, NodeAnswer]] = []
    for id, node in planned_fleet.fleet.nodes.items():
        evaluation = ranking.evaluation(id)
        no = avoid.get(id)
        if isinstance(best, Group) and id in grouped:
            candidates.append((-1, _in_group(node, best, grouped[id], chosen=id in chosen)))
            continue
        match evaluation:
            case None:
                continue
            case Candidate() if id in taking:
                place, candidate = taking[id]
                candidates.append((place, candidate_answer(candidate, node.name, chosen=id in chosen)))
            case Candidate():
                refusals.append((0, id, NodeAnswer(id, node.name, no, chosen=id in chosen)))
            case Refusal(stage=stage, reason=reason):
                answer = NodeAnswer(
                    id,
                    node.name,
                    no or with_own(node, planned_fleet.assigned(id), ranking.demand, reason),
                    chosen=id in chosen,
                )
                refusals.append((0 if no else -stage, id, answer))
    ordered = [answer for _, answer in sorted(candidates, key=itemgetter(0))]
    return (*ordered, *(answer for _, _, answer in sorted(refusals, key=lambda item: item[:2])))


def _in_group(node: NodeView, group: Group, part: Part, *, chosen: bool) -> NodeAnswer:
    host = part.option.host
    return NodeAnswer(
        node=node.id,
        name=node.name,
        refusal=None,
        rung=LADDER[SEVERAL_NODES].name,
        devices=tuple(device.index for device in part.option.devices),
        bytes=tuple(device.bytes for device in part.option.devices),
        host=host.bytes if host is not None else 0,
        score=group.score,
        scores=group.scores,
        chosen=chosen,
    )


def chosen_answers(planned_fleet: PlannedFleet, best: Candidate | Group) -> tuple[NodeAnswer, ...]:
    """The answers of the nodes that were chosen, alone."""
    nodes = planned_fleet.fleet.nodes
    if isinstance(best, Group):
        return tuple(_in_group(nodes[part.node], best, part, chosen=True) for part in best.parts)
    return (candidate_answer(best, nodes[best.node].name, chosen=True),)


def candidate_answer(candidate: Candidate, name: str, *, chosen: bool) -> NodeAnswer:
    """The yes of a node of this name."""
    return NodeAnswer(
        node=candidate.node,
        name=name,
        refusal=None,
        rung=LADDER[candidate.rung].name,
        devices=tuple(device.index for device in candidate.devices),
        bytes=tuple(device.bytes for device in candidate.devices),
        host=candidate.host.bytes if candidate.host is not None else 0,
        score=candidate.score,
        scores=candidate.scores,
        chosen=chosen,
    )
