"""A dry run of a deploy: where its replicas would go now, or why not. Nothing is decided by it."""

from collections import Counter
from dataclasses import dataclass

from weft_contracts.commit import Cause
from weft_contracts.digest import lora_key, revision_digest
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.machine import FileFound
from weft_contracts.facts.source import UploadSource
from weft_contracts.facts.values import EngineName, Member, ModelSpec
from weft_contracts.ids import CorrelationId, ModelId, replica_id
from weft_contracts.source_keys import source_key
from weft_fleet import Fleet, ModelView, ReplicaView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.claim import ClaimUnknown
from weft_placement.demand import demand_of
from weft_placement.explain import Explanation, answers_of, policy_of
from weft_placement.layers import kept_weights
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy

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

    @property
    def fits(self) -> bool:
        """Whether each replica has a place."""
        return self.staying + self.placed >= self.wanted

    @property
    def placed(self) -> int:
        """How many further replicas have a place."""
        return sum(any(answer.chosen for answer in each.answers) for each in self.explanations)


def dry_run(
    fleet: Fleet, name: str, spec: ModelSpec, policy: Policy | None = None, pinned: str | None = None
) -> DryRun:
    """Place the replicas that a deploy of this spec would add, each beside the ones before it.

    Of a revision that replaces another, each replica is placed while those that it replaces still run, and one of
    them ends before the next. Without a policy, the one of the last decision in the log. `pinned`: of a source that
    nodes fetch, as which one it was found (`source_keys.source_key`); None: as most nodes found it.
    """
    spec = _as_found(fleet, spec, pinned).model_copy(update={"adapters": _adapters(fleet, spec)})
    digest = revision_digest(spec)
    model = fleet.model_named(name)
    there = _wanted(fleet, model)
    staying = [each for each in there if _serves_spec(fleet, each, digest, spec)]
    replaced = [each for each in there if each not in staying]
    revision = 1 if model is None else model.revision + (model.spec != spec)
    id, first = (model.id, model.next_number) if model is not None else (_NEW, 1)
    policy = policy or _last_policy(fleet)
    planned_fleet = PlannedFleet(fleet)
    found: list[Explanation] = []
    missing = max(spec.min_replicas - len(staying), 0 if staying else 1)
    for number in range(first, first + missing):
        replica = ReplicaView(
            id=replica_id(id, number), model=id, revision=revision, number=number, digest=digest, cause=_CAUSE
        )
        explained = _placed(planned_fleet, replica, name, spec, policy)
        found.append(explained)
        if not any(answer.chosen for answer in explained.answers):
            break
        if replaced:
            planned_fleet.release(replaced.pop(0))
    return DryRun(spec, revision, len(staying) + missing, len(staying), tuple(found))


def _placed(
    planned_fleet: PlannedFleet, replica: ReplicaView, name: str, spec: ModelSpec, policy: Policy
) -> Explanation:
    """Where one replica would go; its claim is counted in the planned fleet."""
    fleet = planned_fleet.fleet
    try:
        ranking = CandidateRanking(
            demand_of(replica.model, replica.revision, spec, policy.slots, fleet.engines, fleet.recipes),
            policy,
        )
    except ClaimUnknown as error:
        return Explanation(replica.id, name, fleet.position, policy.text, str(error), (), None)
    ranking.sync(planned_fleet)
    best = next(ranking.candidates(), None)
    if best is None:
        outcome, chosen = ranking.no_candidate().reason, frozenset[str]()
    else:
        outcome, chosen = f"it would go to {fleet.nodes[best.node].name}", frozenset((best.node,))
        planned_fleet.plan(replica, (Member(node=best.node, rank=0, devices=best.claims),), _CAUSE)
    answers = answers_of(planned_fleet, ranking, replica, chosen)
    return Explanation(replica.id, name, fleet.position, policy.text, outcome, answers, None)


def _as_found(fleet: Fleet, spec: ModelSpec, pinned: str | None) -> ModelSpec:
    """The spec with what most nodes found at its source, if any did."""
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
    return own == digest and present.selector == spec.selector


def _last_policy(fleet: Fleet) -> Policy:
    receipts = [view.placed.receipt for view in fleet.replicas.values() if view.placed is not None]
    return policy_of(max(receipts, key=lambda receipt: receipt.position, default=None))
