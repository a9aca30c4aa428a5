"""What an admin tells the mesh of how engines are installed."""

from weft_contracts.backends import builtin_recipes, fault_of_recipe
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.engines import BUILTIN
from weft_contracts.engines.faults import fault_of_profile
from weft_contracts.facts.mesh import BackendSet, BackendUpgraded, BackendWithdrawn, EngineProfileSet
from weft_contracts.facts.request import BackendRequested, BackendUpgradeRequested, BackendWithdrawalRequested
from weft_contracts.formats import unwritable
from weft_contracts.subjects import MESH
from weft_requests import PendingRequest

from weft_registry.domain.engine_profiles import MOST_PROFILES
from weft_registry.domain.node_backends import variants_of
from weft_registry.domain.state import RegistryState

MOST_RECIPES = 32
MOST_SUPERSEDED = 256


def set_backend(state: RegistryState, pending: PendingRequest, fact: BackendRequested) -> Decision:
    """Nodes install an engine by this recipe from now on; what is installed and runs stays as it is."""
    recipe, profile, known = fact.recipe, fact.profile, state.fleet.engines
    engine = recipe.engine
    if profile is not None and engine in BUILTIN:
        return pending.rejected(409, f"{engine} is an engine that Weft comes with: send its recipe alone")
    if profile is not None and (fault := fault_of_profile(profile)) is not None:
        return pending.rejected(422, fault)
    if (fault := fault_of_recipe(recipe, profile or known.get(engine))) is not None:
        return pending.rejected(422, fault)
    told = state.fleet.told_recipes
    if engine not in told and len(told) >= MOST_RECIPES:
        return pending.rejected(409, f"there are {MOST_RECIPES} recipes already, as many as may be: withdraw one")
    if profile is not None and engine not in known and len(known) - len(BUILTIN) >= MOST_PROFILES:
        return pending.rejected(409, f"there are {MOST_PROFILES} profiles already, as many as may be: withdraw one")
    facts: list[EngineProfileSet | BackendSet] = []
    if profile is not None and known.get(engine) != profile:
        by_profile = EngineProfileSet(profile=profile)
        if (why := unwritable(by_profile, state.fleet.formats)) is not None:
            return pending.rejected(409, why)
        facts.append(by_profile)
    if told.get(engine) != recipe:
        facts.append(BackendSet(recipe=recipe))
    if not facts:
        return pending.fulfilled(f"the recipe of {engine} is so already", engine=engine)
    commit = Commit(MESH, tuple(facts), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"nodes install {engine} by this recipe", commit, engine=engine)


def withdraw_backend(state: RegistryState, pending: PendingRequest, fact: BackendWithdrawalRequested) -> Decision:
    """Nodes install an engine as Weft's own catalogue says, or not at all. What is installed stays."""
    engine = fact.engine
    if engine not in state.fleet.told_recipes:
        own = f"{engine} is installed by the recipe that Weft comes with" if engine in builtin_recipes() else ""
        return pending.rejected(404, own or f"there is no recipe of {engine}")
    commit = Commit(MESH, (BackendWithdrawn(engine=engine),), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"the recipe of {engine} is withdrawn", commit, engine=engine)


def upgrade_backend(state: RegistryState, pending: PendingRequest, fact: BackendUpgradeRequested) -> Decision:
    """Replicas that run in what an older recipe made move to what today's makes."""
    engine, fleet = fact.engine, state.fleet
    if not (variants := variants_of(fleet, engine)):
        return pending.rejected(404, f"the catalogue has no recipe of {engine}")
    now = {variant.digest for variant in variants}
    made = {e.recipe for node in fleet.nodes.values() for e in node.environments if e.engine == engine}
    made |= {w.variant.digest for n in fleet.nodes.values() for w in n.wishes.wanted.values() if w.engine == engine}
    version = ", ".join(sorted({variant.version for variant in variants}))
    if not (superseded := tuple(sorted(made - now)[:MOST_SUPERSEDED])):
        why = f"no node has anything else of {engine} than {version}"
        return pending.fulfilled(why, engine=engine, version=version)
    upgraded = BackendUpgraded(engine=engine, superseded=superseded)
    commit = Commit(MESH, (upgraded,), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"replicas of {engine} move to {version}", commit, engine=engine, version=version)
