"""The answer to each request that the registry owns: an outcome, or None while one has to wait for what others say."""

from typing import assert_never

from weft_contracts.commit import Decision
from weft_contracts.facts.request import (
    ApprovalRequested,
    BackendInstallRequested,
    BackendRemovalRequested,
    BackendRequested,
    BackendUpgradeRequested,
    BackendWithdrawalRequested,
    BrakeLiftRequested,
    CordonRequested,
    DrainRequested,
    EngineProfileRequested,
    EngineProfileWithdrawalRequested,
    FilesFetchRequested,
    FilesPinRequested,
    FilesRemovalRequested,
    FilesUnpinRequested,
    JoinRequested,
    LabelsRequested,
    PolicyChoiceRequested,
    PolicyRequested,
    PolicyWithdrawalRequested,
    RegistryRequest,
    RejectionRequested,
    RemovalRequested,
    ReplicaCapRequested,
    ResumeRequested,
    SecretRemovalRequested,
    SecretRequested,
    TokenRequested,
    TokenRevocationRequested,
    UncordonRequested,
    UpgradeFinishRequested,
    VramBudgetRequested,
)
from weft_requests import PendingRequest

from weft_registry.domain.admissions import NOBODY_YET, Admissions
from weft_registry.domain.approval import approve, reject
from weft_registry.domain.backend_recipes import set_backend, upgrade_backend, withdraw_backend
from weft_registry.domain.caps import cap_replicas, set_budget
from weft_registry.domain.cordon import cordon, uncordon
from weft_registry.domain.drain import drain, resume
from weft_registry.domain.engine_profiles import set_profile, withdraw_profile
from weft_registry.domain.join import join
from weft_registry.domain.labels import label
from weft_registry.domain.liveness import lift_brake
from weft_registry.domain.node_backends import install, uninstall
from weft_registry.domain.node_files import fetch_files, pin_files, remove_files, unpin_files
from weft_registry.domain.placement_policies import choose_policy, set_policy, withdraw_policy
from weft_registry.domain.removal import remove
from weft_registry.domain.secrets import remove_secret, set_secret
from weft_registry.domain.state import RegistryState
from weft_registry.domain.token_requests import create, revoke
from weft_registry.domain.upgrade import NOT_ASKED, ServicesHeard, finish

MAX_WHY = 500


def answer(
    state: RegistryState,
    pending: PendingRequest,
    now: float,
    admissions: Admissions = NOBODY_YET,
    services: ServicesHeard = NOT_ASKED,
) -> Decision | None:
    """What becomes of one request. `now` is seconds since the epoch; `admissions` are for registrations, `services` for
    the end of an upgrade."""
    fact = pending.asked
    assert isinstance(fact, RegistryRequest), f"the registry does not own {fact.type}"
    match fact:
        case JoinRequested():
            return join(state, pending, fact, now, admissions)
        case BrakeLiftRequested():
            return lift_brake(state, pending, fact)
        case UpgradeFinishRequested():
            return finish(state, pending, services, now)
        case TokenRequested():
            return create(state, pending, fact)
        case TokenRevocationRequested():
            return revoke(state, pending, fact)
        case EngineProfileRequested():
            return set_profile(state, pending, fact)
        case EngineProfileWithdrawalRequested():
            return withdraw_profile(state, pending, fact)
        case BackendRequested():
            return set_backend(state, pending, fact)
        case BackendWithdrawalRequested():
            return withdraw_backend(state, pending, fact)
        case BackendUpgradeRequested():
            return upgrade_backend(state, pending, fact)
        case PolicyRequested():
            return set_policy(state, pending, fact)
        case PolicyWithdrawalRequested():
            return withdraw_policy(state, pending, fact)
        case PolicyChoiceRequested():
            return choose_policy(state, pending, fact)
        case SecretRequested():
            return set_secret(state, pending, fact)
        case SecretRemovalRequested():
            return remove_secret(state, pending, fact)
        case FilesFetchRequested():
            return fetch_files(state, pending, fact)
        case FilesPinRequested():
            return pin_files(state, pending, fact)
        case FilesUnpinRequested():
            return unpin_files(state, pending, fact)
        case FilesRemovalRequested():
            return remove_files(state, pending, fact)
        case _:  # the others are about one node
            pass
    node = state.fleet.nodes.get(fact.node)
    if node is None or node.removed:
        return pending.rejected(404, f"there is no node {fact.node}")
    why: str = getattr(fact, "why", "")
    if len(why) > MAX_WHY:
        return pending.rejected(400, f"a reason has at most {MAX_WHY} characters, this one {len(why)}")
    match fact:
        case ApprovalRequested():
            return approve(pending, node)
        case RejectionRequested():
            return reject(pending, node, fact)
        case CordonRequested():
            return cordon(pending, node, fact)
        case UncordonRequested():
            return uncordon(pending, node, fact)
        case DrainRequested():
            return drain(pending, node, fact)
        case ResumeRequested():
            return resume(pending, node, fact)
        case LabelsRequested():
            return label(pending, node, fact)
        case ReplicaCapRequested():
            return cap_replicas(pending, node, fact)
        case VramBudgetRequested():
            return set_budget(pending, node, fact)
        case BackendInstallRequested():
            return install(state, pending, node, fact)
        case BackendRemovalRequested():
            return uninstall(state, pending, node, fact)
        case RemovalRequested():
            return remove(state, pending, node, fact)
        case _:
            assert_never(fact)
