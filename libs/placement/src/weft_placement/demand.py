"""What a revision asks of a node: everything that filters, fit and scorers look at."""

from dataclasses import dataclass

from weft_contracts.backends import BackendRecipe, Recipes, builtin_recipes
from weft_contracts.digest import files_digest
from weft_contracts.engines import EngineProfile, Profiles
from weft_contracts.facts.source import FetchedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId
from weft_contracts.source_keys import source_key

from weft_placement.claim import ClaimUnknown, Need, need_of


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
    devices: int | None = None
    """How many devices a replica must span; None: as few as hold it."""
    recipe: BackendRecipe | None = None
    """How nodes install the engine; None: they can't."""
    files: str = ""
    """What names the files that nodes fetch for it, as they tell which they have; empty: it has none to fetch."""
    file_bytes: int = 0
    """All of them."""


def demand_of(
    model: ModelId, revision: int, spec: ModelSpec, slots: int, engines: Profiles, recipes: Recipes | None = None
) -> Demand:
    """`recipes`: how nodes install engines; None: as Weft's own catalogue says. Cost: of a model that nodes fetch, its
    list of files is hashed, once for all nodes (`digest.files_digest`).

    Raises ClaimUnknown where the spec does not say enough to compute a claim, or no profile tells of its engine."""
    profile = engines.get(spec.engine)
    if profile is None:
        raise ClaimUnknown(f"its memory can't be computed: no profile tells of the engine {spec.engine}")
    need, source = need_of(spec, profile), source_key(spec.source)
    recipe = (builtin_recipes() if recipes is None else recipes).get(spec.engine)
    fetched = isinstance(spec.source, FetchedSource)
    return Demand(
        model=model,
        revision=revision,
        spec=spec,
        profile=profile,
        source=source,
        need=need,
        slots=slots,
        devices=_devices(spec),
        recipe=recipe,
        files=files_digest(spec) if fetched else "",
        file_bytes=sum(file.size for file in spec.files),
    )


def _devices(spec: ModelSpec) -> int | None:
    given = spec.engine_args.get("tensor_parallel_size")
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ClaimUnknown(f"engine_args.tensor_parallel_size is {given!r}: want a whole number above 0")
    return given
