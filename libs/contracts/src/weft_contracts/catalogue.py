"""Every fact that Weft writes: who writes it, how often at 1,000 nodes, who may pass over it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from weft_contracts.facts import (
    artifact,
    inspection,
    key,
    machine,
    mesh,
    model,
    name,
    node,
    replica,
    request,
    run,
    token,
)
from weft_contracts.facts.fact import Fact, Voided
from weft_contracts.subjects import Kind

Writer = Literal["registry", "scheduler", "reconciler", "metadata-cache", "gateway", "worker"]
SERVICES: tuple[Writer, ...] = tuple(each for each in get_args(Writer) if each != "worker")
"""Our own. Each has credentials, a certificate and the permissions that follow from what it writes."""

OWNERS: Mapping[type[Fact], Writer] = {
    **dict.fromkeys(get_args(request.RegistryRequest), "registry"),
    **dict.fromkeys(get_args(request.ReconcilerRequest), "reconciler"),
    **dict.fromkeys(get_args(request.GatewayRequest), "gateway"),
}
"""Who answers each request for change."""
ANSWERING: tuple[Writer, ...] = tuple(each for each in SERVICES if each in OWNERS.values())
"""Who owns requests of any kind: nobody else may write how a request ended."""

NODES = 1_000
REPLICAS = 10_000
BUDGET_PER_SECOND = 2.0
"""Of all facts together, on average over a day of a mesh of 1,000 nodes and 10,000 replicas."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One fact of the catalogue."""

    fact: type[Fact]
    writers: tuple[Writer, ...]
    per_day: float
    """Expected at 1,000 nodes and 10,000 replicas, each replaced once a day."""
    ignorable: bool = False
    """A reader that doesn't know this type may pass over it and still decide rightly."""
    version: int = 1
    """The newest one, which this code reads. A fact is written in the lowest that can say it."""

    @property
    def kind(self) -> Kind:
        return self.fact.kind

    @property
    def type(self) -> str:
        return str(self.fact.model_fields["type"].default)

    @property
    def owner(self) -> Writer | None:
        """Who answers a request for change, by a fact on the request itself; None for every other fact."""
        return OWNERS.get(self.fact)


UNWRITTEN: Mapping[type[Fact], str] = {
    Voided: "an operator who sets a commit aside that can't be read; it may stand on any aggregate",
}
"""Facts that every reader knows and nothing writes yet: who will, and when."""

CATALOGUE: tuple[Entry, ...] = (
    Entry(mesh.Founded, ("registry",), 0),
    Entry(mesh.BrakeSet, ("registry",), 1),
    Entry(mesh.BrakeLifted, ("registry",), 1),
    Entry(mesh.FormatRaised, ("registry",), 0),
    Entry(mesh.EngineProfileSet, ("registry",), 1, version=2),
    Entry(mesh.EngineProfileWithdrawn, ("registry",), 1),
    # Who doesn't know them installs nothing, and places where an engine lies already.
    Entry(mesh.BackendSet, ("registry",), 1, ignorable=True),
    Entry(mesh.BackendWithdrawn, ("registry",), 1, ignorable=True),
    Entry(mesh.BackendUpgraded, ("registry",), 1, ignorable=True),
    # Who doesn't know them places by its own settings.
    Entry(mesh.PolicySet, ("registry",), 1, ignorable=True),
    Entry(mesh.PolicyWithdrawn, ("registry",), 1, ignorable=True),
    Entry(mesh.PolicyChosen, ("registry",), 1, ignorable=True),
    Entry(mesh.SecretSet, ("registry",), 10, ignorable=True),
    Entry(mesh.SecretRemoved, ("registry",), 1, ignorable=True),
    Entry(token.Created, ("registry",), 10),
    Entry(token.Revoked, ("registry",), 10),
    Entry(token.Bound, ("registry",), 1, ignorable=True),
    Entry(name.Claimed, ("registry", "reconciler"), NODES * 0.05),
    Entry(name.Released, ("registry", "reconciler"), NODES * 0.05),
    # Who doesn't know it knows no alias; a model that then claims the name ends the alias in every fold.
    Entry(name.Aliased, ("reconciler",), 20, ignorable=True),
    Entry(node.Joined, ("registry",), NODES * 0.05),
    Entry(node.Rejoined, ("registry",), NODES),
    Entry(node.Approved, ("registry",), NODES * 0.05),
    Entry(node.Rejected, ("registry",), 10),
    Entry(node.Expired, ("registry",), 10, ignorable=True),
    Entry(node.Labelled, ("registry",), NODES * 0.1),
    Entry(node.Capped, ("registry",), NODES * 0.05),
    Entry(node.Healthy, ("registry",), NODES * 3),
    Entry(node.Unhealthy, ("registry",), NODES * 2),
    Entry(node.WentOffline, ("registry",), NODES),
    Entry(node.Draining, ("registry",), NODES * 0.2),
    Entry(node.Drained, ("registry",), NODES * 0.2),
    Entry(node.Resumed, ("registry",), NODES * 0.2),
    Entry(node.CutOff, ("registry",), NODES * 0.001),
    Entry(node.Cordoned, ("registry",), NODES * 0.1),
    Entry(node.Uncordoned, ("registry",), NODES * 0.1),
    Entry(node.Removed, ("registry",), NODES * 0.05),
    Entry(node.Assigned, ("scheduler",), REPLICAS, version=5),
    Entry(node.Unassigned, ("scheduler",), REPLICAS),
    # Who doesn't know them installs nothing ahead, and keeps what it has.
    Entry(node.BackendWanted, ("registry",), NODES * 0.05, ignorable=True),
    Entry(node.BackendRetired, ("registry",), NODES * 0.05, ignorable=True),
    # Who doesn't know them fetches nothing ahead, and keeps what it needs.
    Entry(node.FilesWanted, ("registry",), NODES * 0.05, ignorable=True),
    Entry(node.FilesRetired, ("registry",), NODES * 0.05, ignorable=True),
    Entry(machine.Reported, ("worker",), NODES),
    Entry(machine.FileFound, ("worker",), NODES * 2, ignorable=True),
    Entry(machine.FileMissing, ("worker",), NODES * 2, ignorable=True),
    Entry(machine.FilesCame, ("worker",), NODES * 2, ignorable=True),
    Entry(machine.FilesGone, ("worker",), NODES * 2, ignorable=True),
    Entry(machine.FilesFailed, ("worker",), NODES * 0.1, ignorable=True),
    Entry(machine.PressureChanged, ("worker",), NODES * 10),
    Entry(machine.InstallFailed, ("worker",), NODES * 0.1, ignorable=True),
    Entry(run.Installing, ("worker",), REPLICAS * 0.1, ignorable=True),
    Entry(run.Fetching, ("worker",), REPLICAS * 0.2, ignorable=True),
    Entry(run.Loading, ("worker",), REPLICAS * 1.2),
    Entry(run.Ready, ("worker",), REPLICAS * 1.2),
    Entry(run.Degraded, ("worker",), REPLICAS * 0.1),
    Entry(run.Exceeded, ("worker",), REPLICAS * 0.05, ignorable=True),
    Entry(run.Stopping, ("worker",), REPLICAS),
    Entry(run.Stopped, ("worker",), REPLICAS * 1.2),
    Entry(run.Failed, ("worker",), REPLICAS * 0.2),
    Entry(model.SpecAccepted, ("reconciler",), 500, version=5),
    Entry(model.Scaled, ("reconciler",), REPLICAS * 0.5),
    # Who doesn't know it goes by the spec's minimum.
    Entry(model.Sized, ("reconciler",), 2_000, ignorable=True),
    Entry(model.Unservable, ("reconciler",), 100),
    # Who doesn't know it rolls out by the defaults.
    Entry(model.RolloutSet, ("reconciler",), 50, ignorable=True),
    # Who doesn't know it sizes by the mesh's figures.
    Entry(model.ScalingSet, ("reconciler",), 50, ignorable=True),
    # What it changes stands beside it.
    Entry(model.RolledBack, ("reconciler",), 50, ignorable=True),
    Entry(model.Retried, ("reconciler",), 100),
    Entry(model.Unloaded, ("reconciler",), 100),
    # Who doesn't know it follows `replica.evicted`.
    Entry(model.GaveWay, ("scheduler",), REPLICAS * 0.1, ignorable=True),
    Entry(model.Deleted, ("reconciler",), 200),
    Entry(replica.Placed, ("scheduler",), REPLICAS),
    Entry(replica.Unplaceable, ("scheduler",), REPLICAS * 0.2),
    # Who doesn't know it follows the assignments, which bear the epoch.
    Entry(replica.Restarted, ("scheduler",), 200, ignorable=True),
    Entry(replica.Evicted, ("scheduler",), REPLICAS * 0.1),
    Entry(request.JoinRequested, ("gateway",), NODES),
    Entry(request.ApprovalRequested, ("gateway",), NODES * 0.05),
    Entry(request.RejectionRequested, ("gateway",), 10),
    Entry(request.CordonRequested, ("gateway",), NODES * 0.1),
    Entry(request.UncordonRequested, ("gateway",), NODES * 0.1),
    Entry(request.DrainRequested, ("gateway",), NODES * 0.2),
    Entry(request.ResumeRequested, ("gateway",), NODES * 0.2),
    Entry(request.LabelsRequested, ("gateway",), NODES * 0.1),
    Entry(request.ReplicaCapRequested, ("gateway",), NODES * 0.02),
    Entry(request.VramBudgetRequested, ("gateway",), NODES * 0.02),
    Entry(request.RemovalRequested, ("gateway",), NODES * 0.05),
    Entry(request.BrakeLiftRequested, ("gateway",), 1),
    Entry(request.UpgradeFinishRequested, ("gateway",), 0, ignorable=True),
    Entry(request.TokenRequested, ("gateway",), 10),
    Entry(request.TokenRevocationRequested, ("gateway",), 10),
    Entry(request.EngineProfileRequested, ("gateway",), 1, version=2),
    Entry(request.EngineProfileWithdrawalRequested, ("gateway",), 1),
    Entry(request.BackendRequested, ("gateway",), 1, ignorable=True),
    Entry(request.BackendWithdrawalRequested, ("gateway",), 1, ignorable=True),
    Entry(request.BackendUpgradeRequested, ("gateway",), 1, ignorable=True),
    Entry(request.BackendInstallRequested, ("gateway",), NODES * 0.05, ignorable=True),
    Entry(request.BackendRemovalRequested, ("gateway",), NODES * 0.05, ignorable=True),
    Entry(request.PolicyRequested, ("gateway",), 1, ignorable=True),
    Entry(request.PolicyWithdrawalRequested, ("gateway",), 1, ignorable=True),
    Entry(request.PolicyChoiceRequested, ("gateway",), 1, ignorable=True),
    Entry(request.SecretRequested, ("gateway",), 10, ignorable=True),
    Entry(request.SecretRemovalRequested, ("gateway",), 1, ignorable=True),
    Entry(request.FilesFetchRequested, ("gateway",), NODES * 0.02, ignorable=True),
    Entry(request.FilesPinRequested, ("gateway",), NODES * 0.01, ignorable=True),
    Entry(request.FilesUnpinRequested, ("gateway",), NODES * 0.01, ignorable=True),
    Entry(request.FilesRemovalRequested, ("gateway",), NODES * 0.02, ignorable=True),
    Entry(request.DeployRequested, ("gateway",), 500, version=5),
    Entry(request.TrialRequested, ("gateway",), 100, ignorable=True, version=5),
    Entry(request.DeleteRequested, ("gateway",), 200),
    Entry(request.RetryRequested, ("gateway",), 100),
    Entry(request.RollbackRequested, ("gateway",), 20, ignorable=True),
    Entry(request.UnloadRequested, ("gateway",), 100),
    Entry(request.SchedulingRequested, ("gateway",), 50, ignorable=True),
    # A reconciler that doesn't know it wakes nothing; the request waits in vain, as it did before.
    Entry(request.ActivationRequested, ("gateway",), 500, ignorable=True),
    Entry(request.AliasRequested, ("gateway",), 20, ignorable=True),
    Entry(request.AliasRemovalRequested, ("gateway",), 5, ignorable=True),
    Entry(request.Fulfilled, ANSWERING, 2_000),
    Entry(request.Rejected, ANSWERING, 500),
    Entry(inspection.Requested, ("reconciler",), NODES * 4),
    Entry(request.KeyRequested, ("gateway",), 100, ignorable=True),
    Entry(request.KeyRevocationRequested, ("gateway",), 100, ignorable=True),
    Entry(key.Created, ("gateway",), 100, ignorable=True),
    Entry(key.Revoked, ("gateway",), 100, ignorable=True),
    Entry(artifact.Verified, ("metadata-cache",), 2_000, ignorable=True),
    Entry(artifact.Refused, ("metadata-cache",), 100, ignorable=True),
)

BY_TYPE: Mapping[tuple[Kind, str], Entry] = {(entry.kind, entry.type): entry for entry in CATALOGUE}
SKIPPABLE: frozenset[tuple[Kind, str]] = frozenset(key for key, entry in BY_TYPE.items() if entry.ignorable)


def owner_of(asked: request.ChangeRequest) -> Writer:
    """The service that answers a request for change."""
    return OWNERS[type(asked)]


def per_second() -> float:
    """Facts a second that the whole catalogue adds up to, on average over a day."""
    return sum(entry.per_day for entry in CATALOGUE) / 86_400


def written_by(writer: Writer) -> tuple[Entry, ...]:
    """All that one party may write."""
    return tuple(entry for entry in CATALOGUE if writer in entry.writers)
