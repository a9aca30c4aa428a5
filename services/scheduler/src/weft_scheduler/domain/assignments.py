"""What each of a replica's nodes is told of it."""

from collections.abc import Mapping, Sequence

from weft_contracts.facts.node import Assigned
from weft_contracts.facts.values import Member
from weft_contracts.ids import NodeId
from weft_fleet import Fleet, ReplicaView
from weft_placement.installable import to_install
from weft_placement.kept_recipe import recipe_for
from weft_placement.node_evaluator import GROUPS_ARE_SAID_SINCE

_OF_RANKS = GROUPS_ARE_SAID_SINCE["node.assigned"]


def assigned(fleet: Fleet, view: ReplicaView, members: Sequence[Member], epoch: int) -> Mapping[NodeId, Assigned]:
    """By node: the same for all of them, but for what each must install before."""
    digest, spec = fleet.spec_of(view)
    fact = Assigned(
        v=max(spec.needs, _OF_RANKS if len(members) > 1 else 1),
        replica=view.id,
        model=view.model,
        model_name=fleet.models[view.model].name,
        revision=view.revision,
        digest=digest,
        epoch=epoch,
        members=tuple(members),
        spec=spec,
    )
    return {member.node: _with_backend(fleet, fact, member) for member in members}


def _with_backend(fleet: Fleet, fact: Assigned, member: Member) -> Assigned:
    devices = {device.index for device in member.devices}
    recipe = recipe_for(fleet, fact.model, fact.revision)
    backend = to_install(fleet.nodes[member.node], fleet.engines[fact.spec.engine], recipe, devices)
    return fact if backend is None else fact.model_copy(update={"backend": backend})
