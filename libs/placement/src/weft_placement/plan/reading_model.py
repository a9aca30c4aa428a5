"""One model of a plan's file."""

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import PurePath
from typing import Final

from weft_contracts.capability import MOST_CAPABILITIES, fault_of_capability
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.layers import LayerRun
from weft_contracts.facts.values import MOST_PRIORITY, Weights
from weft_contracts.names import ANTI_AFFINITY

from weft_placement.plan.fields import Fields
from weft_placement.plan.sizes import WANTED
from weft_placement.plan.told import ToldModel, ToldNeed, ToldNode
from weft_placement.policy import BUILTIN_POLICIES
from weft_placement.spanning import SpanningFault, spanning_of

_SHAPE: Final = ("weights", "layers", "heads", "kv_heads", "head_dim", "vocab", "vision_heads", "kv_bytes")
MODEL: Final = (
    *("name", "engine", "replicas", "policy", "selector", "capability", "anti_affinity"),
    *(*_SHAPE, "context", "concurrency", "path", "claim"),
    *("gpus", "gpus_per_replica", "tensor_parallel", "pipeline_parallel", "cpu_offload", "distributed"),
    *("preferred_nodes", "gpu_memory_utilization", "priority"),
)
ALL: Final = "all"
_MOST_REPLICAS: Final = 10_000
_VALUE_BYTES: Final = 2
"""Of a cached key or value, where nothing else is said."""
_WIDEST: Final = 8


def model_of(
    fields: Fields,
    nodes: Mapping[str, ToldNode],
    weights_of: Callable[[str], Weights],
    policies: Collection[str] = tuple(BUILTIN_POLICIES),
) -> ToldModel:
    """What a model's object says; it may name one of `policies`. Raises PlanFault."""
    gpus, count = _chosen(fields, nodes), fields.whole_or_none("gpus_per_replica")
    try:
        spans = spanning_of(
            fields.whole_or_none("tensor_parallel"), fields.whole_or_none("pipeline_parallel"), count, gpus
        )
    except SpanningFault as fault:
        raise fields.fault(fault.field, fault.sentence) from None
    path = fields.text("path", "")
    if path and (both := next((name for name in _SHAPE if fields.has(name)), None)):
        raise fields.fault(both, "is what the files at its path tell: leave one of the two out")
    by_path = "llama.cpp" if PurePath(path).suffix.lower() == ".gguf" else "vllm"
    engine = fields.one_of("engine", tuple(BUILTIN), by_path)
    need = _need(fields)
    return ToldModel(
        name=fields.text("name"),
        where=fields.where,
        engine=engine,
        replicas=None if fields.get("replicas") == ALL else fields.whole("replicas", 0, 1, _MOST_REPLICAS),
        policy=fields.one_of("policy", policies, "") if fields.has("policy") else "",
        selector=fields.labels("selector"),
        capability=_capabilities(fields),
        anti_affinity=_anti_affinity(fields),
        weights=_read(fields, path, weights_of) if path else _weights(fields, engine, told=need is not None),
        vocabulary=fields.whole("vocab", 0, 0),
        context=fields.whole("context", 1, 1024),
        concurrency=fields.whole("concurrency", 1, 8, 1024),
        need=need,
        gpus=gpus,
        devices=spans.devices,
        stages=spans.stages,
        wished=spans.wished,
        by_hand=spans.by_hand,
        cpu_offload=fields.flag("cpu_offload"),
        distributed=fields.flag("distributed"),
        preferred=_preferred(fields, nodes),
        utilization=fields.share("gpu_memory_utilization"),
        priority=fields.whole("priority", -MOST_PRIORITY, 0, MOST_PRIORITY),
    )


def _capabilities(fields: Fields) -> tuple[str, ...]:
    found = tuple(fields.texts("capability"))
    if len(found) > MOST_CAPABILITIES:
        raise fields.fault("capability", f"has {len(found)} items, {MOST_CAPABILITIES} are allowed")
    for place, each in enumerate(found):
        if (fault := fault_of_capability(each)) is not None:
            raise fields.fault(f"capability[{place}]", fault)
    return found


def _anti_affinity(fields: Fields) -> str:
    name = fields.text("anti_affinity", "")
    if name and re.fullmatch(ANTI_AFFINITY, name) is None:
        raise fields.fault("anti_affinity", "want at most 63 letters, digits and any of . _ / - between them")
    return name


def _need(fields: Fields) -> ToldNeed | None:
    if not fields.has("claim"):
        return None
    claim = Fields(fields.get("claim"), fields.at("claim"), ("ram", "vram"))
    need = ToldNeed(claim.size("vram") or 0, claim.size("ram") or 0)
    if not need.vram and not need.ram:
        raise fields.fault("claim", "want what a replica needs: vram, ram, or both")
    return need


def _chosen(fields: Fields, nodes: Mapping[str, ToldNode]) -> dict[str, frozenset[int]] | None:
    """By node, the devices that `gpus` names as `node:index`."""
    if not fields.has("gpus"):
        return None
    found: dict[str, set[int]] = {}
    for place, text in enumerate(fields.texts("gpus")):
        id, _, index = text.rpartition(":")
        where = f"gpus[{place}]"
        if not id or not index.isdecimal():
            raise fields.fault(where, 'want "node:index", the index as its vendor counts it, from 0')
        if id not in nodes:
            raise fields.fault(where, f"there is no node {id}")
        if int(index) not in {gpu.index for gpu in nodes[id].gpus}:
            raise fields.fault(where, f"{id} has no gpu {index}")
        found.setdefault(id, set()).add(int(index))
    if not found:
        raise fields.fault("gpus", "is empty: name devices, or leave it out")
    return {id: frozenset(indices) for id, indices in found.items()}


def _preferred(fields: Fields, nodes: Mapping[str, ToldNode]) -> tuple[str, ...]:
    found = tuple(fields.texts("preferred_nodes"))
    for place, id in enumerate(found):
        if id not in nodes:
            raise fields.fault(f"preferred_nodes[{place}]", f"there is no node {id}")
    return found


def _read(fields: Fields, path: str, weights_of: Callable[[str], Weights]) -> Weights:
    try:
        return weights_of(path)
    except ValueError as error:
        raise fields.fault("path", str(error)) from None


def _weights(fields: Fields, engine: str, *, told: bool) -> Weights:
    """The header that the file tells, with layers of one size. `told`: what it needs is said outright."""
    size = fields.size("weights") or 0
    layers, heads = fields.whole_or_none("layers") or 0, fields.whole_or_none("heads") or 0
    kv_heads, head_length = fields.whole_or_none("kv_heads") or heads, fields.whole_or_none("head_dim") or 0
    kv = _kv_bytes_per_token(fields, layers, kv_heads, head_length)
    if not told and not BUILTIN[engine].formats:
        raise fields.fault("claim", f"want {{ram, vram}}: {engine} has no files that tell what it needs")
    if not told and not size:
        raise fields.fault("weights", f"{WANTED}; or claim, which gives the need outright")
    if not told and not kv:
        raise fields.fault("kv_bytes", "want bytes of cache a token; or layers, kv_heads and head_dim; or claim")
    return Weights(
        format=BUILTIN[engine].formats[0] if BUILTIN[engine].formats else "none",
        weight_bytes=size,
        kv_bytes_per_token=kv,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        vision_heads=fields.whole_or_none("vision_heads") or 0,
        layer_runs=(LayerRun(layers, size // layers, kv // layers),) if layers and size and layers <= 65535 else (),
    )


def _kv_bytes_per_token(fields: Fields, layers: int, kv_heads: int, head_length: int) -> int:
    """Bytes of cache for one token: `kv_bytes` is those, or with `head_dim` the bytes of one cached value."""
    given = fields.size("kv_bytes")
    if not head_length:
        return given or 0
    if given is not None and not 1 <= given <= _WIDEST:
        raise fields.fault("kv_bytes", f"with head_dim it is the bytes of one cached value: want 1 to {_WIDEST}")
    return 2 * layers * kv_heads * head_length * (given or _VALUE_BYTES)
