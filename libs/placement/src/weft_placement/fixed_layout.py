"""What a spec fixes of its layout: whether it can be meant, whether the fleet has it, and its nodes by their ids.

It is honoured or refused when the spec comes in; a replica never waits for what no node has.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from weft_contracts.engines import EngineProfile
from weft_contracts.facts.layout import ANY_LAYOUT, Layout
from weft_contracts.facts.values import Device, ModelSpec, Vendor
from weft_fleet import Fleet, NodeView

from weft_placement.claim import ClaimUnknown, need_of
from weft_placement.demand import spans_of
from weft_placement.filters.chosen_devices import numbered
from weft_placement.filters.labels import unmet
from weft_placement.fit.option import gib
from weft_placement.fit.several_devices import divides

_ARGUMENTS: Mapping[str, str] = {
    "tensor_parallel": "tensor_parallel_size",
    "pipeline_parallel": "pipeline_parallel_size",
}
"""What engines call the same."""
_NAMED = 8


class LayoutFault(ValueError):
    """A layout that can't be had. The message is a sentence with the field: `layout.gpus[0]: …`."""


def fault_of_layout(spec: ModelSpec, profile: EngineProfile) -> str | None:
    """What is wrong with a layout whatever there is: it contradicts itself, or its engine can't."""
    return next(_by_itself(spec, profile), None) if spec.layout != ANY_LAYOUT else None


def _by_itself(spec: ModelSpec, profile: EngineProfile) -> Iterator[str]:
    layout, name = spec.layout, profile.name
    twice = [device for device, times in Counter(layout.gpus).items() if times > 1]
    if twice:
        yield f"layout.gpus: names {twice[0]} twice"
    for field, argument in _ARGUMENTS.items():
        fixed, given = getattr(layout, field), spec.engine_args.get(argument)
        if fixed is not None and given is not None and given != fixed:
            yield f"layout.{field} is {fixed}, and engine_args.{argument} {given}: leave one out"
    try:
        spans = spans_of(spec)
    except ClaimUnknown as fault:
        yield str(fault)
        return
    if "nodes" not in profile.splits:
        if layout.distributed:
            yield f"layout.distributed: {name} runs on one node: leave it out, or choose another engine"
        if (layout.pipeline_parallel or 1) > 1:
            yield f"layout.pipeline_parallel: stages are for engines that run over several nodes, {name} runs on one"
        most = max(map(len, layout.chosen.values()), default=0)
        if spans.by_hand and (wanted := spans.devices or 1) > most:
            one = f"of them on one node, since {name} runs on one"
            yield f"layout.gpus: it needs {wanted} {one}; no node has more than {most}"
    elif layout.distributed is False and (layout.pipeline_parallel or 1) > 1:
        yield "layout.pipeline_parallel: stages lie on several nodes, and layout.distributed is false: leave one out"
    if spec.spread_all and (layout.distributed or (layout.pipeline_parallel or 1) > 1):
        yield "layout: spread_all has a replica on each node, so none spans several: leave one out"
    if "devices" not in profile.splits:
        for field in ("tensor_parallel", "gpus_per_replica"):
            if (getattr(layout, field) or 1) > 1:
                yield f"layout.{field}: {name} runs on one device: leave it out"
    if layout.cpu_offload:
        yield "layout.cpu_offload: engine_args say how many layers lie on an accelerator: leave it out, or say false"
    if layout.cpu_offload is False and set(profile.vendors) == {"cpu"}:
        yield f"layout.cpu_offload: {name} runs on processors alone: leave it out"


def in_ids(fleet: Fleet, layout: Layout) -> Layout:
    """The layout with its nodes by their ids, as the log has them. Raises LayoutFault where there is no such node, or
    no such device."""
    if not layout.gpus and not layout.preferred_nodes:
        return layout
    there = {node.id: node for node in fleet.nodes.values() if not node.removed}
    by_name: dict[str, NodeView] = {**{node.name: node for node in there.values()}, **there}
    gpus: list[str] = []
    for place, text in enumerate(layout.gpus):
        name, _, number = text.rpartition(":")
        node = _node(by_name, name, f"layout.gpus[{place}]")
        known = sorted(set(numbered(node).values()))
        if int(number) not in known:
            has = f"it has {', '.join(map(str, known))}" if known else "it has none"
            raise LayoutFault(f"layout.gpus[{place}]: {node.name} has no gpu {number}: {has}")
        gpus.append(f"{node.id}:{int(number)}")
    preferred = [
        _node(by_name, name, f"layout.preferred_nodes[{place}]").id for place, name in enumerate(layout.preferred_nodes)
    ]
    return layout.model_copy(update={"gpus": tuple(gpus), "preferred_nodes": tuple(preferred)})


def _node(nodes: Mapping[str, NodeView], name: str, where: str) -> NodeView:
    if name not in nodes:
        names = sorted({node.name for node in nodes.values()})
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise LayoutFault(f"{where}: there is no node {name}; there is: {', '.join(names[:_NAMED]) or 'none'}{more}")
    return nodes[name]


def fault_in_fleet(spec: ModelSpec, fleet: Fleet, profile: EngineProfile) -> str | None:
    """Why what is fixed can't be had of the nodes that there are, whatever else runs on them; None: it can.

    `spec`: with its weights, and its nodes by their ids.
    """
    need, spans, chosen = need_of(spec, profile), spans_of(spec), spec.layout.chosen
    nodes = [node for node in fleet.nodes.values() if _may_take(node, spec)]
    if chosen:
        needed, there = need.bytes, _chosen_memory(nodes, chosen)
        if there < needed:
            return f"layout.gpus: it needs {gib(needed)}, the chosen devices of one vendor have {gib(there)} in all"
    tensor, stages = spans.devices or 1, spans.stages or 1
    if spans.by_hand or tensor * stages == 1:
        return None
    if spec.weights.heads and not divides(spec.weights, tensor):
        return f"layout.tensor_parallel: {spec.weights.heads} heads do not divide by {tensor}"
    each = need.on_each("nvidia", tensor, stages)  # the same on every accelerator
    counts = [max(_large_enough(node, each, chosen).values(), default=0) for node in nodes]
    most, room = max(counts, default=0), f"with {gib(each)} each"
    if most >= tensor * stages:
        return None
    if stages == 1 or "nodes" not in profile.splits:
        return f"it needs {_devices(tensor * stages)} {room} on one node, the fleet has {most} at most"
    able = sum(count >= tensor for count in counts)
    if able >= stages:
        return None
    has = f"{able} such node" if able == 1 else f"{able} such nodes"
    return f"it needs {_devices(tensor)} {room} on each of {stages} nodes, the fleet has {has}"


def _may_take(node: NodeView, spec: ModelSpec) -> bool:
    return node.approved and not node.gone and unmet(node.labels, spec.selector) is None


def _chosen_memory(nodes: Iterable[NodeView], chosen: Mapping[str, frozenset[int]]) -> int:
    """Bytes of all chosen devices, of the vendor with the most."""
    found = Counter[Vendor]()
    for node in nodes:
        for device in _accelerators(node, chosen):
            found[device.vendor] += device.memory
    return max(found.values(), default=0)


def _large_enough(node: NodeView, size: int, chosen: Mapping[str, frozenset[int]]) -> Counter[Vendor]:
    """How many of a node's accelerators have so much memory, by vendor."""
    return Counter(device.vendor for device in _accelerators(node, chosen) if device.memory >= size)


def _accelerators(node: NodeView, chosen: Mapping[str, frozenset[int]]) -> list[Device]:
    """All of a node's, or those that were chosen."""
    numbers, devices = numbered(node), node.hardware.devices if node.hardware is not None else ()
    wanted = chosen.get(node.id, frozenset())
    return [each for each in devices if each.vendor != "cpu" and (not chosen or numbers[each.index] in wanted)]


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices of one vendor"
