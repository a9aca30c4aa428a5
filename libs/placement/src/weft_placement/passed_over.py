"""Why a ranking has no candidate, or none on a rung below the one that is taken: in words, by the nodes that came
nearest."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.fit import LADDER, SEVERAL_NODES
from weft_placement.fit.option import gib
from weft_placement.group import Group
from weft_placement.node_evaluator import Candidate, Evaluation

_NONE: Mapping[str, str] = MappingProxyType({})
_LOOKED_AT = 8
"""Nodes that are asked why a rung was passed over."""


@dataclass(frozen=True, slots=True)
class NoCandidate:
    """No node can take a replica."""

    reason: str
    """A sentence for people, from the nearest miss."""
    refusals: Mapping[str, int]
    """How many nodes each reason turned away."""


def no_candidate(ranking: CandidateRanking, avoid: Mapping[str, str] = _NONE) -> NoCandidate:
    """Why there is no candidate, of the nodes that need not be avoided: the refusals, and a sentence from the node that
    came nearest. Cost: a look at each refusal, and a search for a group where the replica may be one."""
    refusals = ranking.refusals(avoid)
    near = ranking.came_nearest(avoid)
    if near is not None:
        most = f" (at most {gib(near.free)})" if near.free else ""
        group = f"; {LADDER[SEVERAL_NODES].name}: {ranking.group(avoid)}" if ranking.demand.groups else ""
        return NoCandidate(f"no node can take it; the nearest, {near.name}, {near.reason}{most}{group}", refusals)
    if refusals:
        return NoCandidate(f"no node can take it; every node {next(iter(refusals))}", refusals)
    return NoCandidate("no node can take it; there is none", refusals)


def rungs_below(
    ranking: CandidateRanking, best: Candidate | Group, avoid: Mapping[str, str] = _NONE
) -> tuple[str, ...]:
    """Why each rung under this place was passed over, where it was one for such a replica. Cost: the eight best nodes,
    or those of the group, are evaluated where they weren't."""
    rung, demand = SEVERAL_NODES if isinstance(best, Group) else best.rung, ranking.demand
    told: list[str] = []
    for below in range(rung):
        if below == SEVERAL_NODES:
            found = ranking.group(avoid) if demand.groups else ""
            told += [f"{LADDER[below].name}: {found}"] if found and isinstance(found, str) else []
        elif LADDER[below].ruled_out(demand) is None:
            reasons = (each.missed[below] for each in _best_nodes(ranking, best, avoid) if len(each.missed) > below)
            why = next((miss.reason for miss in reasons if miss is not None and miss.applies), "")
            told += [f"{LADDER[below].name}: the best node {why}"] if why else []
    used = best.devices if isinstance(best, Group) else len(best.devices)
    wished = demand.wished
    if wished is not None and used < wished and rung <= SEVERAL_NODES and not demand.by_hand:
        told.append(f"{wished} devices were asked for: {used} of them hold{'s' if used == 1 else ''} it")
    return tuple(told)


def _best_nodes(ranking: CandidateRanking, best: Candidate | Group, avoid: Mapping[str, str]) -> Iterator[Evaluation]:
    """The nodes of a group, or those that come first."""
    if isinstance(best, Group):
        return (each for part in best.parts if (each := ranking.evaluation(part.node)) is not None)
    return islice(ranking.candidates(avoid), _LOOKED_AT)
