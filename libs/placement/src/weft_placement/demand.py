"""What a revision asks of a node: everything that filters, fit and scorers look at."""

from collections.abc import Mapping
from dataclasses import dataclass

from weft_contracts.backends import BackendRecipe, Recipes, builtin_recipes
from weft_contracts.digest import files_digest
from weft_contracts.draft import draft_key
from weft_contracts.engines import EngineProfile, Profiles
from weft_contracts.facts.source import FetchedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, NodeId
from weft_contracts.source_keys import source_key

from weft_placement.claim import ClaimUnknown, Need, need_of
from weft_placement.policy import Policy
from weft_placement.spanning import Spanning, SpanningFault, spanning_of

ChosenDevices = Mapping[NodeId, frozenset[int]]
"""By node, the devices that somebody chose there, as their vendors count them, from 0."""


@dataclass(frozen=True, slots=True)
class Demand:
    """One revision of a model, as placement sees it."""

    model: ModelId
    revision: int
    spec: ModelSpec
    profile: EngineProfile
    """Of the spec's engine."""
    source: str
    """The key under which nodes answered about its file."""
    need: Need
    slots: int
    """Replicas on one node at most, by policy."""
    fills: bool = True
    """Whether the policy takes the fullest device of a node that holds it."""
    devices: int | None = None
    """How many devices of a node a replica must span, tensor-parallel; None: as few as hold it."""
    stages: int | None = None
    """How many pipeline stages it must have, each on as many devices; None: as few as hold it."""
    wished: int | None = None
    """So many devices at most: fewer where they hold it. None: nothing is said."""
    chosen: ChosenDevices | None = None
    """The devices that somebody chose for it; None: any."""
    by_hand: bool = False
    """Whether `devices` is the number of chosen ones, of one node or of several, and how they share the model is the
    engine's affair."""
    groups: bool = False
    """Whether it may lie on several nodes."""
    preferred: frozenset[NodeId] = frozenset()
    """Nodes that a group takes before others."""
    vocabulary: int = 0
    """How many tokens the model knows, which tensor parallelism shares; 0: not known."""
    offloads: tuple[Need, ...] = ()
    """What it needs with so many layers on an accelerator, from one to all but one, where placement may choose that."""
    processors: bool = True
    """Whether it may lie on a processor."""
    recipe: BackendRecipe | None = None
    """How nodes install the engine; None: they can't."""
    files: str = ""
    """What names the files that nodes fetch for it, as they tell which they have; empty: it has none to fetch."""
    file_bytes: int = 0
    """All of them."""
    draft: str = ""
    """The key under which nodes answered about its draft model's file; empty: it has none."""

    @property
    def spans(self) -> int:
        """How many devices it must span at least."""
        return (self.devices or 1) * (self.stages or 1)


def demand_of(
    model: ModelId,
    revision: int,
    spec: ModelSpec,
    policy: Policy,
    engines: Profiles,
    recipes: Recipes | None = None,
    need: Need | None = None,
) -> Demand:
    """`recipes`: how nodes install engines; None: as Weft's own catalogue says. `need`: where that isn't to be computed
    from the spec. Cost: of a model that nodes fetch, its
    list of files is hashed, once for all nodes (`digest.files_digest`).

    Raises ClaimUnknown where the spec does not say enough to compute a claim or contradicts itself, or no profile tells
    of its engine."""
    profile = engines.get(spec.engine)
    if profile is None:
        raise ClaimUnknown(f"its memory can't be computed: no profile tells of the engine {spec.engine}")
    need, source = need_of(spec, profile) if need is None else need, source_key(spec.source)
    recipe = (builtin_recipes() if recipes is None else recipes).get(spec.engine)
    fetched = isinstance(spec.source, FetchedSource)
    spans, layout = spans_of(spec), spec.layout
    return Demand(
        model=model,
        revision=revision,
        spec=spec,
        profile=profile,
        source=source,
        need=need,
        slots=policy.slots,
        fills=policy.fills(spec.strategy),
        devices=spans.devices,
        stages=spans.stages,
        wished=spans.wished,
        chosen={NodeId(node): numbers for node, numbers in layout.chosen.items()} if layout.gpus else None,
        by_hand=spans.by_hand,
        groups="nodes" in profile.splits and layout.distributed is not False and not spec.spread_all,
        preferred=frozenset(NodeId(node) for node in layout.preferred_nodes),
        processors=layout.cpu_offload is not False,
        recipe=recipe,
        files=files_digest(spec) if fetched else "",
        file_bytes=sum(file.size for file in spec.files),
        draft=draft_key(spec, profile),
    )


def spans_of(spec: ModelSpec) -> Spanning:
    """How many devices a spec fixes. Raises ClaimUnknown where it contradicts itself."""
    layout = spec.layout
    tensor = layout.tensor_parallel or _whole(spec, "tensor_parallel_size")
    stages = layout.pipeline_parallel or _whole(spec, "pipeline_parallel_size")
    try:
        return spanning_of(tensor, stages, layout.gpus_per_replica, layout.chosen if layout.gpus else None)
    except SpanningFault as fault:
        raise ClaimUnknown(f"layout.{fault}") from None


def _whole(spec: ModelSpec, name: str) -> int | None:
    given = spec.engine_args.get(name)
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ClaimUnknown(f"engine_args.{name} is {given!r}: want a whole number above 0")
    return given
