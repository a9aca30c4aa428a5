"""A dry run of a deploy: where its replicas would go now, or why not. Nothing is decided by it."""

from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass

from weft_contracts.commit import Cause
from weft_contracts.digest import lora_key, revision_digest
from weft_contracts.draft import draft_key
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.machine import FileFound
from weft_contracts.facts.source import UploadSource
from weft_contracts.facts.values import EngineName, ModelSpec
from weft_contracts.ids import CorrelationId, ModelId, NodeId, replica_id
from weft_contracts.source_keys import source_key
from weft_fleet import Fleet, ModelView, ReplicaView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.chosen_policy import chosen_policy
from weft_placement.claim import ClaimUnknown
from weft_placement.decide import demand_for, in_this_mesh, members_of
from weft_placement.demand import demand_of
from weft_placement.eviction import give_room, hold_rooms
from weft_placement.explain import Explanation
from weft_placement.filters.avoid import avoided
from weft_placement.fixed_layout import LayoutFault, in_ids
from weft_placement.fleet_copy import planned_copy
from weft_placement.layers import kept_weights
from weft_placement.node_answers import answers_of, chosen_answers
from weft_placement.passed_over import no_candidate
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy
from weft_placement.remedies.question import Question
from weft_placement.set_aside import SetAside

ANSWERS_KEPT = 8
"""Replicas that are told with every node's answer; of further ones, only where they would go."""
_NEW = ModelId("m-new")
_CAUSE = Cause(CorrelationId("dry-run"))


@dataclass(frozen=True, slots=True)
class DryRun:
    """How a deploy would go, replica by replica. One that finds no place is the last."""

    spec: ModelSpec
    """The spec that was given, with the weights and files that the nodes found."""
    revision: int
    wanted: int
    """Replicas that there would be in all, had each a place."""
    staying: int
    """Replicas that there are and that serve the spec as it is."""
    explanations: tuple[Explanation, ...]
    question: Question | None = None
    """What the replica that finds no place asks, beside those that have one; None: each has one, or what it needs isn't
    known."""

    @property
    def fits(self) -> bool:
        """Whether each replica has a place."""
        return self.staying + self.placed >= self.wanted

    @property
    def placed(self) -> int:
        """How many further replicas have a place."""
        return sum(any(answer.chosen for answer in each.answers) for each in self.explanations)


def dry_run(
    fleet: Fleet,
    name: str,
    spec: ModelSpec,
    policy: Policy | None = None,
    pinned: str | None = None,
    set_aside: SetAside | None = None,
    now: float = 0.0,
) -> DryRun:
    """All of `dry_run_in_turns` at once."""
    turns = dry_run_in_turns(fleet, name, spec, policy, pinned, set_aside, now=now)
    while True:
        try:
            next(turns)
        except StopIteration as over:
            return over.value


def dry_run_in_turns(
    fleet: Fleet,
    name: str,
    spec: ModelSpec,
    policy: Policy | None = None,
    pinned: str | None = None,
    set_aside: SetAside | None = None,
    *,
    now: float,
) -> Generator[None, None, DryRun]:
    """Place the replicas that a deploy of this spec would add, each beside the ones before it.

    Of a revision that replaces another, each replica is placed while those that it replaces still run, and one of
    them ends before the next. Others may have their turn between two of them; the fleet must stay as it is meanwhile
    (`fleet_copy`). Without a policy, the one by which the mesh places such a model. `pinned`: of a source
    that nodes fetch, as which one it was found (`source_keys.source_key`); None: as most nodes found it. `set_aside`:
    nodes that nothing is placed on, and why. `now`: seconds since the epoch; room that is kept until later for what
    waits is taken.
    """
    spec = _as_found(fleet, spec, pinned).model_copy(update=_found_beside(fleet, spec))
    digest = revision_digest(spec)
    model = fleet.model_named(name)
    there = _wanted(fleet, model)
    staying = [each for each in there if _serves_spec(fleet, each, digest, spec)]
    replaced = [each for each in there if each not in staying]
    revision = 1 if model is None else model.revision + (model.spec != spec)
    id, first = (model.id, model.next_number) if model is not None else (_NEW, 1)
    policy = policy or chosen_policy(fleet, spec)
    planned_fleet = PlannedFleet(fleet)
    hold_rooms(planned_fleet, now)
    for each in replaced:  # what waits of them waits no more
        give_room(planned_fleet, each)
    found: list[Explanation] = []
    ranking: CandidateRanking | str
    try:
        demand = demand_of(id, revision, spec, policy, fleet.engines, fleet.recipes)
        ranking = CandidateRanking(in_this_mesh(fleet, demand), policy)
    except ClaimUnknown as error:
        ranking = str(error)
    missing = max(spec.min_replicas - len(staying), 0 if staying else 1)
    avoid = tuple(sorted({member.node for each in staying for member in each.members} if spec.spread_all else ()))
    if spec.spread_all:
        missing = len(fleet.nodes) - len(staying)
    for number in range(first, first + missing):
        replica = ReplicaView(
            id=replica_id(id, number),
            model=id,
            revision=revision,
            number=number,
            digest=digest,
            cause=_CAUSE,
            avoid=avoid,
        )
        told = number - first < ANSWERS_KEPT
        explained = _placed(planned_fleet, replica, name, policy, ranking, set_aside or {}, told=told)
        if spec.spread_all and found and not any(answer.chosen for answer in explained.answers):
            break  # each node that matches and has room has one
        found.append(explained)
        if not any(answer.chosen for answer in explained.answers):
            break
        if replaced:
            planned_fleet.release(replaced.pop(0))
        yield
    wanted = len(staying) + (len(found) if spec.spread_all else missing)
    question = None
    if isinstance(ranking, CandidateRanking) and found and not any(answer.chosen for answer in found[-1].answers):
        without = frozenset(NodeId(id) for id in (*avoid, *(set_aside or {})))
        question = Question(planned_copy(planned_fleet), ranking.demand, policy, fleet.recipes, without)
    return DryRun(spec, revision, wanted, len(staying), tuple(found), question)


def next_replica(model: ModelView) -> ReplicaView:
    """The one that would come next, of the revision that there should be replicas of."""
    revision = model.current
    return ReplicaView(
        id=replica_id(model.id, model.next_number),
        model=model.id,
        revision=revision.number,
        number=model.next_number,
        digest=revision.digest,
        cause=_CAUSE,
    )


def one_more(fleet: Fleet, model: ModelView, set_aside: SetAside | None = None, *, now: float) -> Explanation:
    """Where the model's next replica would go `now` (seconds since the epoch), with every node's answer."""
    replica, revision = next_replica(model), model.current
    policy = chosen_policy(fleet, revision.spec)
    ranking: CandidateRanking | str
    try:
        ranking = CandidateRanking(demand_for(fleet, replica, policy), policy)
    except ClaimUnknown as error:
        ranking = str(error)
    planned_fleet = PlannedFleet(fleet)
    hold_rooms(planned_fleet, now)
    return _placed(planned_fleet, replica, model.name, policy, ranking, set_aside or {}, told=True)


def _placed(
    planned_fleet: PlannedFleet,
    replica: ReplicaView,
    name: str,
    policy: Policy,
    ranking: CandidateRanking | str,
    set_aside: SetAside,
    *,
    told: bool,
) -> Explanation:
    """Where one replica would go; its claim is counted in the planned fleet. `told`: with every node's answer."""
    fleet = planned_fleet.fleet
    if isinstance(ranking, str):
        return Explanation(replica.id, name, fleet.position, policy.text, ranking, (), None)
    ranking.sync(planned_fleet)
    avoid = {**set_aside, **avoided(replica.avoid)}
    best = ranking.best(avoid)
    if best is None:
        outcome = no_candidate(ranking, avoid).reason
        answers = answers_of(planned_fleet, ranking, replica, (), set_aside)
    else:
        members = members_of(best)
        chosen = frozenset(member.node for member in members)
        outcome = f"it would go to {' and '.join(fleet.nodes[member.node].name for member in members)}"
        answers = (
            answers_of(planned_fleet, ranking, replica, chosen, set_aside)
            if told
            else chosen_answers(planned_fleet, best)
        )
        planned_fleet.plan(replica, members, _CAUSE, ranking.demand.spec)
    return Explanation(replica.id, name, fleet.position, policy.text, outcome, answers, None)


def _as_found(fleet: Fleet, spec: ModelSpec, pinned: str | None) -> ModelSpec:
    """The spec with what most nodes found at its source, if any did."""
    with suppress(LayoutFault):  # whoever answered the trial has refused it
        spec = spec.model_copy(update={"layout": in_ids(fleet, spec.layout)})
    profile = fleet.engines.get(spec.engine)
    if profile is not None and isinstance(spec.source, UploadSource):  # whoever sends it has told
        return spec.model_copy(update={"weights": kept_weights(spec, spec.weights, profile)})
    found = _most_found(fleet, source_key(spec.source), spec.engine, pinned)
    if found is None or profile is None:
        return spec
    update: dict[str, object] = {"weights": kept_weights(spec, found.weights, profile)}
    if found.files:
        update |= {"source": found.pinned or spec.source, "files": found.files}
    return spec.model_copy(update=update)


def _found_beside(fleet: Fleet, spec: ModelSpec) -> dict[str, object]:
    """What most nodes found of the files beside the model's."""
    profile = fleet.engines.get(spec.engine)
    draft = draft_key(spec, profile) if profile is not None else ""
    found = _most_found(fleet, draft, spec.engine) if draft else None
    return {
        "adapters": _adapters(fleet, spec),
        "draft": found.weights.without_layers if found is not None else spec.draft,
    }


def _adapters(fleet: Fleet, spec: ModelSpec) -> tuple[LoraAdapter, ...]:
    """The spec's LoRA adapters, with what most nodes found of each."""
    return tuple(
        adapter
        if (own := _most_found(fleet, lora_key(adapter), spec.engine)) is None
        else adapter.model_copy(update={"bytes": own.weights.weight_bytes, "fingerprint": own.weights.fingerprint})
        for adapter in spec.adapters
    )


def _most_found(fleet: Fleet, key: str, engine: EngineName, pinned: str | None = None) -> FileFound | None:
    answers = [node.file(key, engine) for node in fleet.nodes.values() if not node.gone]
    found = [each for each in answers if isinstance(each, FileFound)]
    if pinned is not None:
        found = [each for each in found if each.pinned is not None and source_key(each.pinned) == pinned] or found
    counted = Counter((each.weights, each.pinned, each.files) for each in found)
    if not counted:
        return None
    most = counted.most_common(1)[0][0]
    return next(each for each in found if (each.weights, each.pinned, each.files) == most)


def _wanted(fleet: Fleet, model: ModelView | None) -> list[ReplicaView]:
    if model is None:
        return []
    return [view for id in model.replicas if (view := fleet.replicas[id]).wanted and not view.evicted]


def _serves_spec(fleet: Fleet, replica: ReplicaView, digest: str, spec: ModelSpec) -> bool:
    own, present = fleet.spec_of(replica)
    return own == digest and present.places == spec.places
