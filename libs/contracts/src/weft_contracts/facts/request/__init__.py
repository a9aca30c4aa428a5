"""Requests for change, by the gateway; their outcomes, by the services that own them.

A module for each owner: it alone answers what stands in its union, which the catalogue's `Entry.owner` is read off.
"""

from typing import Annotated

from pydantic import Field

from weft_contracts.facts.request.gateway import (
    GatewayRequest,
    KeyRequested,
    KeyRevocationRequested,
)
from weft_contracts.facts.request.reconciler import (
    ActivationRequested,
    AliasRemovalRequested,
    AliasRequested,
    DeleteRequested,
    DeployRequested,
    ReconcilerRequest,
    RetryRequested,
    RollbackRequested,
    SchedulingRequested,
    TrialRequested,
    UnloadRequested,
)
from weft_contracts.facts.request.registry import (
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
from weft_contracts.facts.request.request import Fulfilled, Rejected

__all__ = [
    "ActivationRequested",
    "AliasRemovalRequested",
    "AliasRequested",
    "ApprovalRequested",
    "BackendInstallRequested",
    "BackendRemovalRequested",
    "BackendRequested",
    "BackendUpgradeRequested",
    "BackendWithdrawalRequested",
    "BrakeLiftRequested",
    "ChangeRequest",
    "CordonRequested",
    "DeleteRequested",
    "DeployRequested",
    "DrainRequested",
    "EngineProfileRequested",
    "EngineProfileWithdrawalRequested",
    "FilesFetchRequested",
    "FilesPinRequested",
    "FilesRemovalRequested",
    "FilesUnpinRequested",
    "Fulfilled",
    "GatewayRequest",
    "JoinRequested",
    "KeyRequested",
    "KeyRevocationRequested",
    "LabelsRequested",
    "PolicyChoiceRequested",
    "PolicyRequested",
    "PolicyWithdrawalRequested",
    "ReconcilerRequest",
    "RegistryRequest",
    "Rejected",
    "RejectionRequested",
    "RemovalRequested",
    "ReplicaCapRequested",
    "RequestFact",
    "ResumeRequested",
    "RetryRequested",
    "RollbackRequested",
    "SchedulingRequested",
    "SecretRemovalRequested",
    "SecretRequested",
    "TaggedChangeRequest",
    "TokenRequested",
    "TokenRevocationRequested",
    "TrialRequested",
    "UncordonRequested",
    "UnloadRequested",
    "UpgradeFinishRequested",
    "VramBudgetRequested",
]

ChangeRequest = RegistryRequest | ReconcilerRequest | GatewayRequest
TaggedChangeRequest = Annotated[ChangeRequest, Field(discriminator="type")]
"""The same for fields that are read back from JSON: told apart by `type`, and not by trying one after the other."""
RequestFact = Annotated[ChangeRequest | Fulfilled | Rejected, Field(discriminator="type")]
