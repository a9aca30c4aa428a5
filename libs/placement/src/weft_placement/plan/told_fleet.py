"""The fleet that a plan's file tells, folded from the facts that a mesh would have of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft_contracts.backends import BackendRecipe, Recipes
from weft_contracts.commit import Cause, Recorded
from weft_contracts.digest import files_digest, revision_digest
from weft_contracts.engines import BUILTIN, EngineProfile, HeaderClaim
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FilesCame, PressureChanged, Reported
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, Healthy, Joined
from weft_contracts.facts.replica import Evicted, Placed
from weft_contracts.facts.run import Loading, Ready
from weft_contracts.facts.source import SimulatedSource, SourceFile, UploadSource
from weft_contracts.facts.values import (
    Addresses,
    Backend,
    Device,
    DeviceClaim,
    Hardware,
    Member,
    ModelSpec,
    Receipt,
    Vendor,
)
from weft_contracts.formats import WORKERS_READ
from weft_contracts.ids import CorrelationId, EventId, Incarnation, ModelId, NodeId, ReplicaId, TokenId, replica_id
from weft_contracts.subjects import Aggregate, machine, model, node, replica, run
from weft_fleet import Fleet

from weft_placement.device_memory import PROCESSOR
from weft_placement.plan.told import ToldFleet, ToldModel, ToldNode, ToldRun

CAUSE = Cause(CorrelationId("plan"))
_BY = TokenId("t-plan")
_UNTOLD = ModelSpec(source=SimulatedSource(), engine="simulated", min_replicas=0, max_replicas=0)
"""Of a model that runs, and of which the file wants none: it may end."""

_NO_RECEIPT = Receipt(
    position=0, policy="", policy_digest="", seed=0, trigger="", decided_at=0, refusals={}, candidates=()
)


@dataclass(frozen=True, slots=True)
class PlanFleet:
    """The folded fleet, and what its ids stand for."""

    fleet: Fleet
    nodes: Mapping[str, NodeId]
    """By the file's id; ids sort as the file's do."""
    models: Mapping[str, ModelId]
    specs: Mapping[str, ModelSpec]
    devices: Mapping[NodeId, Mapping[int, int]]
    """Of each node, how its vendor counts an accelerator, by the fold's index."""
    runs: Mapping[ModelId, int]
    """How many replicas of a model there were already: the next one's number is above."""
    idle_s: Mapping[ModelId, float] = field(default_factory=dict[ModelId, float])
    """For how long each that runs wasn't used: as long as its replica that was used last; empty: nobody knows, and
    nothing ends for another."""
    recipes: Recipes = field(default_factory=dict[str, BackendRecipe])
    """How nodes install engines; none: what a node has, it has."""

    def name_of(self, id: NodeId) -> str:
        """A node as the file calls it."""
        return self.fleet.nodes[id].name

    def index_of(self, node: str, gpu: int) -> int:
        """The fold's index of a node's accelerator."""
        return next(index for index, number in self.devices[self.nodes[node]].items() if number == gpu)


class _Told:
    """Facts, appended and folded at once."""

    def __init__(self, fleet: Fleet | None = None) -> None:
        self.fleet = fleet or Fleet()

    def add(self, aggregate: Aggregate, *facts: Fact) -> None:
        sequence = self.fleet.position + 1
        self.fleet.apply(
            Recorded(
                sequence=sequence,
                aggregate=aggregate,
                facts=facts,
                event_id=EventId(f"e{sequence}"),
                correlation_id=CAUSE.correlation_id,
                causation_id=None,
                actor="plan",
                at=float(sequence),
            )
        )


def fleet_of(told: ToldFleet) -> PlanFleet:
    """The fleet with its nodes, what runs on them, and the files that lie there."""
    log = _Told()
    ids = {id: NodeId(f"n-{place:06}") for place, id in enumerate(sorted(each.id for each in told.nodes))}
    devices: dict[NodeId, Mapping[int, int]] = {}
    for each in told.nodes:
        devices[ids[each.id]] = _add_node(log, ids[each.id], each)
    names = dict.fromkeys([*(each.name for each in told.models), *(each.model for each in told.running)])
    models = {name: ModelId(f"m-{place:06}") for place, name in enumerate(names)}
    specs = {each.name: spec_of(place, each) for place, each in enumerate(told.models)}
    for name, id in models.items():
        spec = specs.get(name) or _UNTOLD
        log.add(model(id), SpecAccepted(name=name, revision=1, digest=revision_digest(spec), spec=spec))
    found = PlanFleet(log.fleet, ids, models, specs, devices, {}, {})
    runs: dict[ModelId, int] = {}
    idle: dict[ModelId, float] = {}
    for each in told.running:
        id = models[each.model]
        runs[id] = runs.get(id, 0) + 1
        idle[id] = min(each.idle_s, idle.get(id, each.idle_s))
        _add_run(log, found, each, id, runs[id])
    for name, there in told.ready.items():
        files, size = files_digest(specs[name]), sum(file.size for file in specs[name].files)
        for each in there:
            log.add(machine(ids[each]), FilesCame(files=files, bytes=size))
    return PlanFleet(log.fleet, ids, models, specs, devices, runs, idle)


def spec_of(place: int, told: ToldModel) -> ModelSpec:
    """What a mesh would be told of a model, with files that nodes fetch."""
    name = f"model-{place}"
    bound = 0 if told.replicas == 0 else 1  # of none more, what runs of it may end
    return ModelSpec(
        source=UploadSource(name=name),
        engine=told.engine,
        context_tokens=told.context,
        concurrency=told.concurrency,
        selector=dict(told.selector),
        capability=told.capability,
        anti_affinity=told.anti_affinity,
        priority=told.priority,
        spread_all=told.replicas is None,
        min_replicas=bound,
        max_replicas=bound,
        weights=told.weights,
        files=(SourceFile(name=name, size=told.weights.weight_bytes),),
    )


def _add_node(log: _Told, id: NodeId, told: ToldNode) -> Mapping[int, int]:
    """The node, healthy; how vendors count its accelerators, by the fold's index."""
    numbers = {PROCESSOR + 1 + place: gpu.index for place, gpu in enumerate(told.gpus)}
    gpus = [
        Device(
            index=PROCESSOR + 1 + place,
            number=gpu.index,
            vendor=gpu.vendor,
            name=gpu.name,
            memory=gpu.vram,
            unified=told.unified,
            compute_capability=gpu.capability,
        )
        for place, gpu in enumerate(told.gpus)
    ]
    host = [Device(index=PROCESSOR, vendor="cpu", name="processor", memory=told.ram)] if told.ram else []
    vendors: dict[Vendor, None] = dict.fromkeys(gpu.vendor for gpu in told.gpus)
    backends = (_backend(profile, tuple(vendors)) for profile in BUILTIN.values())
    joined = Joined(
        name=told.id,
        public_key=f"U{id}",
        token=_BY,
        addresses=Addresses(host="127.0.0.1", http_port=1),
        labels=dict(told.labels),
    )
    log.add(node(id), joined, Approved(by=_BY))
    report = Reported(
        hardware=Hardware(cpus=1, memory=told.ram, disk_free=told.disk, devices=(*host, *gpus)),
        backends=tuple(backend for backend in backends if backend.vendors),
        builtins=(),
        agent_version="plan",
        reads=dict(WORKERS_READ),
    )
    log.add(machine(id), report)
    if told.reserved and host:
        log.add(machine(id), PressureChanged(device=PROCESSOR, bytes=told.reserved))
    for place, gpu in enumerate(told.gpus):
        if gpu.pressure:
            log.add(machine(id), PressureChanged(device=PROCESSOR + 1 + place, bytes=gpu.pressure))
    log.add(node(id), Healthy())
    return numbers


def _backend(profile: EngineProfile, accelerators: tuple[Vendor, ...]) -> Backend:
    """Each engine that isn't for processors alone lies there in its build for the node's accelerators; one that can lie
    in two places, or has no build of its own, computes on the processor, too."""
    if profile.vendors == ("cpu",):
        return Backend(engine=profile.name, version="plan", vendors=("cpu",))
    both = not isinstance(profile.claim, HeaderClaim) or profile.claim.layers_argument is not None
    on_processor: tuple[Vendor, ...] = ("cpu",) if "cpu" in profile.vendors and (both or not accelerators) else ()
    return Backend(engine=profile.name, version="plan", vendors=(*accelerators, *on_processor))


def _add_run(log: _Told, found: PlanFleet, told: ToldRun, id: ModelId, number: int) -> None:
    where = found.nodes[told.node]
    claims = {found.index_of(told.node, gpu): size for gpu, size in told.claim.gpus.items()}
    if told.claim.ram:
        claims[PROCESSOR] = told.claim.ram
    held = tuple(DeviceClaim(index=index, bytes=size) for index, size in sorted(claims.items()))
    view = found.fleet.models[id]
    assigned = Assigned(
        replica=replica_id(id, number),
        model=id,
        model_name=told.model,
        revision=1,
        digest=view.digest,
        epoch=1,
        members=(Member(node=where, rank=0, devices=held),),
        spec=view.spec,
    )
    place = Placed(model=id, revision=1, epoch=1, members=assigned.members, receipt=_NO_RECEIPT)
    started = Incarnation("plan")
    ready = Ready(epoch=1, incarnation=started, port=1, engine=view.spec.engine, engine_version="plan")
    log.add(model(id), Scaled(revision=1, add=(assigned.replica,), why="it runs"))
    log.add(replica(assigned.replica), place)
    log.add(node(where), assigned)
    log.add(run(where, assigned.replica), Loading(epoch=1, incarnation=started), ready)


def end(found: PlanFleet, id: ReplicaId, fact: Evicted) -> None:
    """A replica makes room for another."""
    _Told(found.fleet).add(replica(id), fact)
