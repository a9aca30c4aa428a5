"""A log of a fleet that is in use: nodes of 8 devices of 80 GiB with 4 replicas each, of 100 models of different sizes,
placed where chance put them."""

import random

from weft_contracts.facts.node import Assigned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.formats import WORKERS_READ
from weft_contracts.ids import ModelId, NodeId
from weft_contracts.subjects import node, replica
from weft_placement import BALANCED
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
MODELS = 100
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": 4 * GIB})
"""A model of 4 GiB."""
_RECEIPT = Receipt(
    position=1,
    policy=BALANCED.text,
    policy_digest=BALANCED.digest,
    seed=1,
    trigger="",
    decided_at=1.0,
    refusals={},
    candidates=(),
)


def idle_fleet(nodes: int) -> FleetLog:
    """The nodes alone."""
    log = FleetLog()
    for number in range(nodes):
        log.node(f"w{number:05}", *[80 * GIB] * 8, labels={"zone": f"{number % 10}"}, reads=WORKERS_READ)
    return log


def assigned_fleet(nodes: int) -> FleetLog:
    """The nodes with what runs there."""
    log, chance = idle_fleet(nodes), random.Random(1)
    ids = tuple(log.fleet.nodes)
    specs: dict[ModelId, ModelSpec] = {}
    for number in range(MODELS):
        spec = _sized(number)
        specs[log.model(f"m{number:03}", spec, replicas=4 * nodes // MODELS)] = spec
    for number, view in enumerate(tuple(log.fleet.replicas.values())):
        spec, id = specs[view.model], NodeId(ids[number % nodes])
        claim = DeviceClaim(index=chance.randrange(8), bytes=int(str(spec.engine_args["memory_bytes"])))
        members = (Member(node=id, rank=0, devices=(claim,)),)
        assigned = Assigned(
            replica=view.id,
            model=view.model,
            model_name=view.model[2:],
            revision=1,
            digest=view.digest,
            epoch=1,
            members=members,
            spec=spec,
        )
        log.add(node(id), assigned)
        log.add(replica(view.id), Placed(model=view.model, revision=1, epoch=1, members=members, receipt=_RECEIPT))
    return log


def _sized(number: int) -> ModelSpec:
    """The number's model: from 1 to 32 GiB, no two alike."""
    return SPEC.model_copy(update={"engine_args": {"memory_bytes": GIB + number * 37 % 64 * (GIB // 2) + number}})
