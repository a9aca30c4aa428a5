"""What one node answers to one demand: that it is a candidate, with its score, or the reason for its no."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from weft_contracts.facts import values
from weft_contracts.facts.values import DeviceClaim, Vendor
from weft_contracts.formats import lacking
from weft_contracts.ids import NodeId
from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory, node_memory
from weft_placement.filters import FILTERS
from weft_placement.filters.chosen_devices import only_chosen
from weft_placement.filters.device_capability import only_capable
from weft_placement.fit import LADDER, SEVERAL_NODES
from weft_placement.fit.option import Miss, Option, in_order, with_host
from weft_placement.fit.several_devices import fitting_for
from weft_placement.group import Group, Offer, Part
from weft_placement.installable import lacks
from weft_placement.policy import Policy
from weft_placement.scorers import SCORED_AT_ONCE, score, weighted
from weft_placement.scorers.apart import apart, beside_own
from weft_placement.scorers.files_there import files_there


@dataclass(frozen=True, slots=True)
class Candidate:
    """This node's yes: a place on it, on the lowest rung that holds the replica."""

    node: NodeId
    rung: int
    devices: tuple[DeviceClaim, ...]
    score: float
    scores: Mapping[str, float]
    missed: tuple[Miss | None, ...]
    """Why each lower rung was passed over; None for the one that asks several nodes."""
    host: DeviceClaim | None = None
    """What it claims of the machine's memory beside accelerators."""
    layers: int | None = None
    """How many of its layers lie on the accelerator, where placement chose that."""
    offer: Offer | None = None
    """What it has for a group, where such a replica may lie on several nodes."""

    @property
    def claims(self) -> tuple[DeviceClaim, ...]:
        """All that a replica holds there: of the machine's memory, then of its devices."""
        return self.devices if self.host is None else (self.host, *self.devices)

    @property
    def rank(self) -> "Rank":
        """Sorts the best first: whole on accelerators, farther from others of the model, where the engine lies, the
        lower rung, the higher score, fewer devices, the node's id."""
        first = (-self.scores.get("apart", 1.0), -self.scores.get("installed", 1.0))
        return (self.rung > SEVERAL_NODES, *first, self.rung, -self.score, len(self.devices), self.node)

    @property
    def recorded(self) -> values.Candidate:
        """The candidate as a receipt records it."""
        return values.Candidate(
            node=self.node,
            devices=tuple(device.index for device in self.devices),
            score=self.score,
            scores=dict(self.scores),
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """This node's no."""

    node: NodeId
    stage: int
    """How far it came: the number of filters passed."""
    reason: str
    free: int = 0
    """Bytes that were free where memory was what it lacked."""
    name: str = ""
    """The node's name, for people."""
    missed: tuple[Miss | None, ...] = ()
    """Where it passed the filters: why each rung was passed over."""
    offer: Offer | None = None
    """What it has for a group, where such a replica may lie on several nodes."""


Evaluation = Candidate | Refusal
GROUPS_ARE_SAID_SINCE: Mapping[str, int] = MappingProxyType({"node.assigned": 5})
Rank = tuple[bool, float, float, int, float, int, NodeId]


class NodeEvaluator:
    """Evaluates single nodes for one demand under one policy. Cost: one node's devices and filters."""

    def __init__(self, demand: Demand, policy: Policy) -> None:
        self.demand = demand
        self._scorers = weighted(policy, demand.spec.strategy)
        self._apart = policy.apart != "no"

    @property
    def weights(self) -> tuple[tuple[str, float], ...]:
        """The scorers' names and weights, which add up to 1."""
        return tuple((name, weight) for name, _, weight in self._scorers)

    @property
    def estimated(self) -> bool:
        """Whether scores can be computed for many nodes at once (`estimate.py`)."""
        return {name for name, _ in self.weights} <= SCORED_AT_ONCE

    def evaluate(self, node: NodeView, assigned: NodeAssignments) -> Evaluation:
        """The node's answer: filters in order, then the ladder, then the scores."""
        demand = self.demand
        for stage, passes in enumerate(FILTERS):
            reason = passes(node, assigned, demand)
            if reason is not None:
                return Refusal(node.id, stage, reason, name=node.name)
        devices, host = self._memory(node, assigned)
        offer = self._offer(node, assigned, devices, host) if demand.groups else None
        misses: list[Miss | None] = []
        for rung, each in enumerate(LADDER):
            found = each.fit(devices, demand, host) if each.fit is not None else None
            if not isinstance(found, Option):
                misses.append(found)
                continue
            total, scores = score(self._scorers, node, assigned, demand, found)
            taken = [device.index for device in found.devices]
            if lacks(node, demand.profile, demand.recipe, taken):
                scores = {"installed": 0.0, **scores}
            if self._apart:
                scores = {"apart": apart(assigned, demand), **scores}
            told = (total, scores, tuple(misses), found.host, found.layers, offer)
            return Candidate(node.id, rung, found.devices, *told)
        near = nearest(misses)
        most = max(miss.free for miss in misses if miss is not None and miss.applies == near.applies)
        return Refusal(node.id, len(FILTERS), near.reason, most, node.name, tuple(misses), offer)

    def part(
        self, node: NodeView, assigned: NodeAssignments, vendor: Vendor, count: int, tensor: int, stages: int
    ) -> Option | Miss:
        """The node's part of a group: `count` of its devices of this vendor, each with its share of so many
        tensor-parallel parts and stages."""
        devices, host = self._memory(node, assigned)
        own = [device for device in devices if device.vendor == vendor]
        fitting = in_order(self.demand, fitting_for(own, self.demand, tensor, stages))
        if len(fitting) < count:
            return Miss(f"has not {count} devices for its part")
        return with_host(fitting[:count], self.demand.need, host)

    def group(self, parts: Sequence[tuple[NodeView, NodeAssignments, Part]]) -> Group:
        """The group that these parts make, with its scores: each the mean over its nodes, and of devices all count."""
        each = [score(self._scorers, node, assigned, self.demand, part.option)[1] for node, assigned, part in parts]
        scores = {name: round(sum(one[name] for one in each) / len(each), 6) for name, _, _ in self._scorers}
        found = Group(tuple(part for _, _, part in parts), 0.0, scores)
        if "devices" in scores:
            scores["devices"] = round(1 / found.devices, 6)
        total = round(sum(scores[name] * weight for name, _, weight in self._scorers), 6)
        if any(self._lacks(node, part) for node, _, part in parts):
            scores = {"installed": 0.0, **scores}
        if self._apart:
            scores = {"apart": min(apart(assigned, self.demand) for _, assigned, _ in parts), **scores}
        return Group(found.parts, total, scores)

    def _memory(self, node: NodeView, assigned: NodeAssignments) -> tuple[list[DeviceMemory], DeviceMemory | None]:
        """The devices that it may lie on, and the processor's memory."""
        demand = self.demand
        devices, host = node_memory(node, assigned, demand.profile, demand.recipe)
        if demand.chosen is not None:
            devices = only_chosen(devices, node, demand)
        devices = only_capable(devices, node, demand)
        if self._apart and demand.model in assigned.models:
            devices = beside_own(devices, assigned, demand)
        return devices, host

    def _offer(
        self, node: NodeView, assigned: NodeAssignments, devices: list[DeviceMemory], host: DeviceMemory | None
    ) -> Offer | None:
        """What it has for a group; None: nothing, or its worker knows of no groups."""
        if not knows_groups(node):
            return None
        demand, most = self.demand, dict[Vendor, list[int]]()
        for device in devices:
            if device.vendor != "cpu" and (size := demand.need.most_of(device.total, device.free)):
                most.setdefault(device.vendor, []).append(size)
        if not most:
            return None
        taken = [device.device_index for device in devices if device.vendor != "cpu"]
        first = self.liking(node, assigned, taken)
        largest: dict[Vendor, tuple[int, ...]] = {v: tuple(sorted(sizes, reverse=True)) for v, sizes in most.items()}
        return Offer(node.id, first, largest, None if host is None else host.free)

    def liking(self, node: NodeView, assigned: NodeAssignments, devices: Collection[int]) -> tuple[float, ...]:
        """What sorts the node before others for a group that takes of these devices: `Offer.first`."""
        demand = self.demand
        return (
            float(node.id not in demand.preferred),
            -apart(assigned, demand) if self._apart else -1.0,
            float(lacks(node, demand.profile, demand.recipe, devices)),
            -files_there(node, assigned, demand),
        )

    def _lacks(self, node: NodeView, part: Part) -> bool:
        taken = [device.index for device in part.option.devices]
        return lacks(node, self.demand.profile, self.demand.recipe, taken)


def knows_groups(node: NodeView) -> bool:
    """Whether the node's worker reads of groups."""
    return not lacking(node.reads, GROUPS_ARE_SAID_SINCE)


def nearest(misses: Sequence[Miss | None]) -> Miss:
    """The miss that tells most: of the highest rung on accelerators that is for such a replica, else of the highest
    that is."""
    told = [miss for miss in misses if miss is not None]
    on_accelerators = [miss for miss in misses[:SEVERAL_NODES] if miss is not None and miss.applies]
    return next(iter(on_accelerators[::-1] or [miss for miss in told if miss.applies][::-1] or told[1:]))
