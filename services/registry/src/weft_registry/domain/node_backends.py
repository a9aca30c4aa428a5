"""What a node is to have of engines ahead of need, and which of its environments are to go."""

from collections.abc import Iterator
from itertools import islice

from weft_contracts.backend_wishes import wish_key
from weft_contracts.backends import BackendVariant
from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.node import BackendRetired, BackendWanted
from weft_contracts.facts.request import BackendInstallRequested, BackendRemovalRequested
from weft_contracts.facts.values import EngineName, Vendor
from weft_contracts.ids import CorrelationId, ReplicaId
from weft_contracts.subjects import node as node_of
from weft_fleet import Fleet, NodeView
from weft_placement.installable import installable
from weft_requests import PendingRequest

from weft_registry.domain.node_change import on_node
from weft_registry.domain.state import RegistryState

CHANGED_A_ROUND = 32
_USES = ("loading", "ready", "degraded", "stopping")


def install(state: RegistryState, pending: PendingRequest, node: NodeView, fact: BackendInstallRequested) -> Decision:
    """A node is to have an engine: for its accelerators where there is a recipe for them, else for its processor."""
    name, fleet = fact.engine, state.fleet
    engine, recipe = fleet.engines.get(name), fleet.recipes.get(name)
    if engine is None:
        return pending.rejected(404, f"the mesh knows no engine {name}: there are {', '.join(sorted(fleet.engines))}")
    if recipe is None:
        return pending.rejected(409, f"the catalogue has no recipe of {name}: add one")
    could = installable(node, engine, recipe)
    if isinstance(could, str):
        why = could or "says nothing of what it can install"
        return pending.rejected(409, f"{node.name} can't install {name}: it {why}")
    variant = could[_preferred([*could])]
    wanted = BackendWanted(engine=name, variant=variant)
    is_so = node.wishes.wanted.get(wish_key(name, variant.vendor)) == wanted
    is_so = is_so and wish_key(name, variant.vendor) not in node.wishes.faults  # asked anew, it is tried anew
    said: dict[str, str] = {"engine": name, "version": variant.version, "vendor": variant.vendor}
    why = f"{node.name} is to have {name} {variant.version} for {variant.vendor}"
    return on_node(pending, node, None if is_so else wanted, why, **said)


def _preferred(vendors: list[Vendor]) -> Vendor:
    return min(vendors, key=lambda vendor: (vendor == "cpu", vendor))


def uninstall(state: RegistryState, pending: PendingRequest, node: NodeView, fact: BackendRemovalRequested) -> Decision:
    """What a node installed of an engine is to go, and to stay away until something needs it."""
    name, version = fact.engine, fact.version
    own = [each for each in node.environments if each.engine == name]
    chosen = [each.name for each in own if version in ("", each.version)]
    wanted = [each for each in node.wishes.wanted.values() if each.engine == name]
    wished = [each for each in wanted if version in ("", each.variant.version)]
    if not chosen and not wished:
        there = ", ".join(sorted(each.version for each in own))
        has = f"of {name} it has {there}" if there else f"it installed no {name}"
        return pending.rejected(404, f"{node.name} has nothing to remove: {has}")
    if used := sorted(id for each in chosen for id in used_by(state.fleet, node, each)):
        return pending.rejected(409, f"{node.name} runs {', '.join(used[:8])} in it: undeploy or unload that before")
    why = f"{node.name} removes {name}{f' {version}' if version else ''}"
    retired = BackendRetired(engine=name, environments=tuple(chosen), at_once=True, lifts=bool(wished), why="admin")
    return on_node(pending, node, retired, why, engine=name)


def used_by(fleet: Fleet, node: NodeView, environment: str) -> list[ReplicaId]:
    """The replicas that run in an environment of a node."""
    found: list[ReplicaId] = []
    for id in fleet.assigned(node.id).assignments:
        replica = fleet.replicas.get(id)
        run = replica.runs.get(node.id) if replica is not None else None
        if run is not None and run.backend == environment and run.phase in _USES:
            found.append(id)
    return found


def superseded(state: RegistryState) -> Iterator[Decision]:
    """Wishes follow an upgrade, and environments that no recipe names any more are to go once unused for a while."""
    yield from islice(_superseded(state), CHANGED_A_ROUND)


def _superseded(state: RegistryState) -> Iterator[Decision]:
    named: dict[EngineName, frozenset[str]] = {}
    for node in state.fleet.nodes.values():
        if node.removed or not (node.environments or node.wishes.wanted):
            continue
        facts: tuple[BackendWanted | BackendRetired, ...] = (
            *_wishes_that_follow(state.fleet, node),
            *_unnamed(state.fleet, node, named),
        )
        if facts:
            aggregate, cause = node_of(node.id), Cause(CorrelationId(f"superseded-{node.id}"))
            change = Commit(aggregate, facts, Guard(aggregate, node.sequence), cause)
            yield Decision((change,), f"{node.name} has or wants what is superseded")


def _wishes_that_follow(fleet: Fleet, node: NodeView) -> Iterator[BackendWanted]:
    for wanted in node.wishes.wanted.values():
        upgrade, recipe = fleet.upgraded.get(wanted.engine), fleet.recipes.get(wanted.engine)
        engine = fleet.engines.get(wanted.engine)
        if upgrade is None or recipe is None or engine is None or wanted.variant.digest not in upgrade.superseded:
            continue
        could = installable(node, engine, recipe)
        variant = None if isinstance(could, str) else could.get(wanted.variant.vendor)
        if variant is not None and variant != wanted.variant:
            yield BackendWanted(engine=wanted.engine, variant=variant)


def _unnamed(fleet: Fleet, node: NodeView, named: dict[EngineName, frozenset[str]]) -> Iterator[BackendRetired]:
    """`named`: digests of the variants that the catalogue has of each engine; what is asked for is filled in."""
    wished = {wanted.variant.digest for wanted in node.wishes.wanted.values()}
    old: dict[EngineName, list[str]] = {}
    for each in node.environments:
        if each.engine not in named:
            named[each.engine] = frozenset(variant.digest for variant in variants_of(fleet, each.engine))
        kept = not each.recipe or each.recipe in named[each.engine] or each.recipe in wished
        if not kept and each.name not in node.wishes.retired:
            old.setdefault(each.engine, []).append(each.name)
    for engine, names in sorted(old.items()):
        yield BackendRetired(engine=engine, environments=tuple(names), why="no recipe names it")


def variants_of(fleet: Fleet, engine: EngineName) -> tuple[BackendVariant, ...]:
    """What the catalogue has of an engine now."""
    recipe = fleet.recipes.get(engine)
    return recipe.variants if recipe is not None else ()
