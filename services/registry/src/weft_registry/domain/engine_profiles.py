"""What an admin tells the mesh of engines that Weft doesn't come with."""

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.engines import BUILTIN
from weft_contracts.engines.faults import fault_of_profile
from weft_contracts.facts.mesh import EngineProfileSet, EngineProfileWithdrawn
from weft_contracts.facts.request import EngineProfileRequested, EngineProfileWithdrawalRequested
from weft_contracts.facts.values import EngineName
from weft_contracts.formats import unwritable
from weft_contracts.subjects import MESH
from weft_requests import PendingRequest

from weft_registry.domain.state import RegistryState

MOST_PROFILES = 32
"""Beside the built-in ones: as many as a worker looks for in environments of their own."""
_NAMED = 8
"""Models that a rejection names."""


def set_profile(state: RegistryState, pending: PendingRequest, fact: EngineProfileRequested) -> Decision:
    """The mesh knows an engine by this profile. What runs keeps its claim; what is placed later is counted by it."""
    profile, known = fact.profile, state.fleet.engines
    if profile.name in BUILTIN:
        return pending.rejected(409, f"{profile.name} is an engine that Weft comes with: give yours another name")
    fault = fault_of_profile(profile)
    if fault is not None:
        return pending.rejected(422, fault)
    told = EngineProfileSet(profile=profile)
    if (why := unwritable(told, state.fleet.formats)) is not None:
        return pending.rejected(409, why)
    result = {"engine": profile.name, "digest": profile.digest}
    if known.get(profile.name) == profile:
        return pending.fulfilled(f"the profile of {profile.name} is so already", **result)
    if profile.name not in known and len(known) - len(BUILTIN) >= MOST_PROFILES:
        return pending.rejected(409, f"there are {MOST_PROFILES} profiles already, as many as may be: withdraw one")
    commit = Commit(MESH, (told,), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"the engine {profile.name} has the profile {profile.digest}", commit, **result)


def withdraw_profile(state: RegistryState, pending: PendingRequest, fact: EngineProfileWithdrawalRequested) -> Decision:
    """The mesh knows an engine no more that no model uses."""
    engine = fact.engine
    if engine in BUILTIN:
        return pending.rejected(409, f"{engine} is an engine that Weft comes with: its profile can't be withdrawn")
    if engine not in state.fleet.engines:
        return pending.rejected(404, f"there is no engine {engine}")
    users = _users(state, engine)
    if users:
        named, more = ", ".join(users[:_NAMED]), f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
        return pending.rejected(409, f"{named}{more} would be left without an engine: delete what uses it first")
    commit = Commit(MESH, (EngineProfileWithdrawn(engine=engine),), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"the profile of {engine} is withdrawn", commit, engine=engine)


def _users(state: RegistryState, engine: EngineName) -> list[str]:
    """Names of models of which a revision is for this engine that is the newest, is kept, or has replicas."""
    fleet = state.fleet
    users: list[str] = []
    for model in fleet.models.values():
        revisions = {model.revision, *(fleet.replicas[id].revision for id in model.replicas)}
        if model.kept is not None:
            revisions.add(model.kept.number)
        specs = (model.specs[each][1] for each in revisions if each in model.specs)
        if not model.deleted and any(spec.engine == engine for spec in specs):
            users.append(model.name)
    return sorted(users)
