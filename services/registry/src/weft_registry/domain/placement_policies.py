"""Placement policies that an admin tells the mesh, and the one that models are placed by that name none."""

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.mesh import PolicyChosen, PolicySet, PolicyWithdrawn
from weft_contracts.facts.request import PolicyChoiceRequested, PolicyRequested, PolicyWithdrawalRequested
from weft_contracts.policies import BUILTIN_NAMES, MOST_POLICIES
from weft_contracts.subjects import MESH
from weft_fleet.policies_named import models_by_policy, policy_names
from weft_requests import PendingRequest

from weft_registry.domain.state import RegistryState

_NAMED = 8
"""Models that a rejection names."""


def set_policy(state: RegistryState, pending: PendingRequest, fact: PolicyRequested) -> Decision:
    """Models are placed by this policy that name it; what runs stays where it is."""
    policy, told = fact.policy, state.fleet.policies
    name = policy.name
    if name in BUILTIN_NAMES:
        return pending.rejected(409, f"{name} is a policy that Weft comes with: give yours another name")
    if told.get(name) == policy:
        return pending.fulfilled(f"the policy {name} is so already", policy=name)
    if name not in told and len(told) >= MOST_POLICIES:
        return pending.rejected(409, f"there are {MOST_POLICIES} policies already, as many as may be: withdraw one")
    commit = Commit(MESH, (PolicySet(policy=policy),), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"the policy {name} is set", commit, policy=name)


def withdraw_policy(state: RegistryState, pending: PendingRequest, fact: PolicyWithdrawalRequested) -> Decision:
    """There is no such policy any more, where nobody goes by it."""
    name = fact.name
    if name in BUILTIN_NAMES:
        return pending.rejected(409, f"{name} is a policy that Weft comes with: it can't be withdrawn")
    if name not in state.fleet.policies:
        return pending.rejected(404, _none_such(state, name))
    if name == state.fleet.policy:
        return pending.rejected(409, f"{name} is the mesh's own policy: choose another one first")
    if users := models_by_policy(state.fleet).get(name, []):
        named, more = ", ".join(users[:_NAMED]), f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
        return pending.rejected(409, f"{named}{more} would be left without it: deploy what names it without it first")
    commit = Commit(MESH, (PolicyWithdrawn(name=name),), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"the policy {name} is withdrawn", commit, policy=name)


def choose_policy(state: RegistryState, pending: PendingRequest, fact: PolicyChoiceRequested) -> Decision:
    """Models that name no policy are placed by this one."""
    name = fact.name
    if name not in policy_names(state.fleet):
        return pending.rejected(404, _none_such(state, name))
    if name == state.fleet.policy:
        return pending.fulfilled(f"{name} is the mesh's own policy already", policy=name)
    commit = Commit(MESH, (PolicyChosen(name=name),), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"{name} is the mesh's own policy", commit, policy=name)


def _none_such(state: RegistryState, name: str) -> str:
    return f"there is no policy {name}; there is: {', '.join(policy_names(state.fleet))}"
