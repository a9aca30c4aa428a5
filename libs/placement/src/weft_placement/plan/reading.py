"""A plan's file, read strictly: what it says in plain values becomes nodes, what runs, and models."""

from collections.abc import Callable, Collection, Mapping
from typing import Final, cast, get_args

from weft_contracts.capability import fault_of_capability
from weft_contracts.facts.values import Vendor, Weights
from weft_contracts.written_policy import UnreadablePolicy, policy_of

from weft_placement.plan.faults import PlanFault
from weft_placement.plan.fields import Fields
from weft_placement.plan.reading_model import MODEL, model_of
from weft_placement.plan.sizes import WANTED, size_of
from weft_placement.plan.told import ToldClaim, ToldFleet, ToldGpu, ToldModel, ToldNode, ToldRun
from weft_placement.policy import BUILTIN_POLICIES, BadPolicy, Policy, policy_made_of

ROOT: Final = ("policies", "nodes", "running", "ready_files", "models")
NODE: Final = ("id", "labels", "ram", "reserved", "disk", "unified_memory", "gpus")
GPU: Final = ("index", "vendor", "name", "vram", "pressure", "capability")
RUN: Final = ("model", "node", "claim", "idle_s")
VENDORS: Final = tuple(vendor for vendor in get_args(Vendor) if vendor != "cpu")
MOST_INDEX: Final = 1023
WeightsOf = Callable[[str], Weights]
"""Reads what the headers of a model's files say. Raises ValueError with a sentence."""


def plan_of(document: object, weights_of: WeightsOf) -> ToldFleet:
    """What a file says; `weights_of` reads a model's files where one names their path. Raises PlanFault."""
    root = Fields(document, "", ROOT)
    policies = {**BUILTIN_POLICIES, **policies_of(root)}
    nodes = tuple(_node(each) for each in root.objects("nodes", NODE))
    by_id: dict[str, ToldNode] = {}
    for place, node in enumerate(nodes):
        if node.id in by_id:
            raise PlanFault(f"nodes[{place}].id", f"{node.id} is the id of another node, too")
        by_id[node.id] = node
    models = models_of(root, by_id, weights_of, tuple(policies))
    names = {model.name for model in models}
    running = tuple(_run(each, by_id) for each in root.objects("running", RUN))
    return ToldFleet(nodes, running, _ready(root, names, by_id), models, policies)


def models_of(
    root: Fields, nodes: Mapping[str, ToldNode], weights_of: WeightsOf, policies: Collection[str]
) -> tuple[ToldModel, ...]:
    """The file's models, each by another name; `policies`: those that one may name. Raises PlanFault."""
    models = tuple(model_of(each, nodes, weights_of, policies) for each in root.objects("models", MODEL))
    names: set[str] = set()
    for model in models:
        if model.name in names:
            raise PlanFault(f"{model.where}.name", f"{model.name} is the name of another model, too")
        names.add(model.name)
    return models


def policies_of(root: Fields) -> dict[str, Policy]:
    """The file's own policies, by name. Raises PlanFault."""
    found: dict[str, Policy] = {}
    for place, each in enumerate(root.items("policies")):
        where = f"policies[{place}]"
        try:
            policy = policy_made_of(policy_of(each))
        except (UnreadablePolicy, BadPolicy) as fault:
            raise PlanFault(where, str(fault)) from None
        if policy.name in BUILTIN_POLICIES or policy.name in found:
            raise PlanFault(f"{where}.name", f"{policy.name} is the name of another policy, too")
        found[policy.name] = policy
    return found


def _node(fields: Fields) -> ToldNode:
    unified, ram = fields.flag("unified_memory") or False, fields.size("ram") or 0
    if unified and not ram:
        raise fields.fault("ram", "want the machine's memory, which its accelerators share (unified_memory)")
    gpus = tuple(_gpu(each, place, ram if unified else 0) for place, each in enumerate(fields.objects("gpus", GPU)))
    seen: set[int] = set()
    for place, gpu in enumerate(gpus):
        if gpu.index in seen:
            raise fields.fault(f"gpus[{place}].index", f"{gpu.index} is the index of another one, too")
        seen.add(gpu.index)
    return ToldNode(
        id=fields.text("id"),
        labels=fields.labels("labels"),
        ram=ram,
        reserved=fields.size("reserved") or 0,
        disk=fields.size("disk"),
        unified=unified,
        gpus=gpus,
    )


def _gpu(fields: Fields, place: int, shared: int) -> ToldGpu:
    vram = fields.size("vram") or shared
    vram = min(vram, shared) if shared else vram
    if not vram:
        raise fields.fault("vram", WANTED)
    vendor = fields.one_of("vendor", VENDORS, "nvidia")
    capability = fields.text("capability", "")
    if capability and (fault := fault_of_capability(capability)) is not None:
        raise fields.fault("capability", fault)
    return ToldGpu(
        index=fields.whole("index", 0, place, MOST_INDEX),
        vendor=cast("Vendor", vendor),
        name=fields.text("name", vendor),
        vram=vram,
        pressure=fields.size("pressure") or 0,
        capability=capability or None,
    )


def _run(fields: Fields, nodes: Mapping[str, ToldNode]) -> ToldRun:
    node = nodes.get(fields.text("node"))
    if node is None:
        raise fields.fault("node", f"there is no node {fields.text('node')}")
    claim = Fields(fields.get("claim") or {}, fields.at("claim"), ("ram", "gpus"))
    gpus: dict[int, int] = {}
    for key, value in claim.mapping("gpus").items():
        size = size_of(value)
        if not key.isdecimal() or int(key) not in {gpu.index for gpu in node.gpus}:
            raise claim.fault(f"gpus.{key}", f"{node.id} has no gpu {key}")
        if size is None:
            raise claim.fault(f"gpus.{key}", WANTED)
        gpus[int(key)] = size
    ram = claim.size("ram") or 0
    if ram and not node.ram:
        raise claim.fault("ram", f"nothing says what memory {node.id} has: name its ram")
    if not ram and not gpus:
        raise fields.fault("claim", "want what it holds: ram, gpus, or both")
    return ToldRun(fields.text("model"), node.id, ToldClaim(ram, gpus), fields.seconds("idle_s"))


def _ready(root: Fields, models: set[str], nodes: Mapping[str, ToldNode]) -> dict[str, tuple[str, ...]]:
    files = Fields(root.get("ready_files") or {}, "ready_files", tuple(root.mapping("ready_files")))
    found: dict[str, tuple[str, ...]] = {}
    for name in root.mapping("ready_files"):
        if name not in models:
            raise PlanFault(f"ready_files.{name}", f"there is no model {name} among the models")
        found[name] = tuple(files.texts(name))
        for place, id in enumerate(found[name]):
            if id not in nodes:
                raise PlanFault(f"ready_files.{name}[{place}]", f"there is no node {id}")
    return found
