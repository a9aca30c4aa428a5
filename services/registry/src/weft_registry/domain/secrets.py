"""Secrets by name: set, set anew, removed. No value comes here: it lies sealed in the bucket, under a drawn id."""

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.mesh import SecretRemoved, SecretSet
from weft_contracts.facts.request import SecretRemovalRequested, SecretRequested
from weft_contracts.ids import NodeId
from weft_contracts.secrets import MOST_SECRETS
from weft_contracts.subjects import MESH
from weft_fleet.secrets_named import models_naming, secrets_by_node, wishes_naming
from weft_requests import PendingRequest

from weft_registry.domain.state import RegistryState

_NAMED = 8
"""Models, or files, that a rejection names."""


def set_secret(state: RegistryState, pending: PendingRequest, fact: SecretRequested) -> Decision:
    """The name has this value from here on; nodes that may have it fetch it within their next look."""
    known = state.fleet.secrets
    before = known.get(fact.name)
    if before is None and len(known) >= MOST_SECRETS:
        return pending.rejected(409, f"there are {MOST_SECRETS} secrets already, as many as may be: remove one")
    version = pending.sequence if before is None else max(pending.sequence, before.version + 1)
    change = SecretSet(name=fact.name, version=version, sealed=fact.sealed)
    commit = Commit(MESH, (change,), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"the secret {fact.name} is set", commit, secret=fact.name, version=str(version))


def remove_secret(state: RegistryState, pending: PendingRequest, fact: SecretRemovalRequested) -> Decision:
    """The secret is gone, where nothing live names it."""
    if fact.name not in state.fleet.secrets:
        return pending.rejected(404, f"there is no secret {fact.name}")
    users = models_naming(state.fleet, fact.name)
    if users:
        why = f"{_first(users)} would be left without it: deploy what names it without it first"
        return pending.rejected(409, why)
    wishes = [f"the files of {model} on {node}" for model, node in wishes_naming(state.fleet, fact.name)]
    if wishes:
        return pending.rejected(409, f"{_first(wishes)} are to be had with it: unpin or remove these files first")
    commit = Commit(MESH, (SecretRemoved(name=fact.name),), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled(f"the secret {fact.name} is removed", commit, secret=fact.name)


def _first(users: list[str]) -> str:
    more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
    return f"{', '.join(users[:_NAMED])}{more}"


def copies_due(state: RegistryState) -> dict[tuple[NodeId, str], int]:
    """Which nodes are to have which secret, and in which version: those alone whose assignments name it."""
    fleet = state.fleet
    if not fleet.secrets:
        return {}
    due: dict[tuple[NodeId, str], int] = {}
    for node, names in secrets_by_node(fleet).items():
        view = fleet.nodes.get(node)
        if view is None or not view.approved or view.removed or view.cut_off is not None:
            continue
        due.update({(node, name): fleet.secrets[name].version for name in names if name in fleet.secrets})
    return due
