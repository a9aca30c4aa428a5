"""What the registry answers: requests about nodes, tokens, engines, secrets and the mesh."""

from typing import Annotated, Literal

from pydantic import Field

from weft_contracts.backends.recipe import BackendRecipe
from weft_contracts.engines.profile import EngineProfile
from weft_contracts.facts.fact import Versioned
from weft_contracts.facts.request.request import Request
from weft_contracts.facts.source import FilesDigest
from weft_contracts.facts.values import Addresses, Caps, EngineName, NodeKind, VramBudget
from weft_contracts.ids import ModelId, NodeId, TokenId
from weft_contracts.policies import PlacementPolicy, PolicyName
from weft_contracts.secrets import SealedId, SecretName

MOST_FILE_NODES = 64
"""Whose files one request changes: all of them, in one batch, or none."""
FileNodes = Annotated[tuple[NodeId, ...], Field(max_length=MOST_FILE_NODES)]


class JoinRequested(Request, frozen=True):
    """A machine asks to join. The gateway has checked its token."""

    type: Literal["join_requested"] = "join_requested"
    token: TokenId
    name: str
    public_key: str
    addresses: Addresses
    labels: dict[str, str] = {}
    caps: Caps = Caps()
    certificate_key: str = ""
    """For which it asks certificates (`certificates.check_key`); empty: for none."""
    node_kind: NodeKind = "worker"
    signed_at: float = 0.0
    """When the machine signed this, on its own clock, in seconds since the epoch; 0: nobody noted it."""


class ApprovalRequested(Request, frozen=True):
    type: Literal["approval_requested"] = "approval_requested"
    node: NodeId


class RejectionRequested(Request, frozen=True):
    """Turn a node away that waits for approval."""

    type: Literal["rejection_requested"] = "rejection_requested"
    node: NodeId
    why: str


class CordonRequested(Request, frozen=True):
    """Place nothing new on a node."""

    type: Literal["cordon_requested"] = "cordon_requested"
    node: NodeId
    why: str = ""


class UncordonRequested(Request, frozen=True):
    """Lift a cordon."""

    type: Literal["uncordon_requested"] = "uncordon_requested"
    node: NodeId
    why: str = ""


class DrainRequested(Request, frozen=True):
    """Empty a node: what runs there is replaced elsewhere, finished and retired."""

    type: Literal["drain_requested"] = "drain_requested"
    node: NodeId
    why: Literal["admin", "worker"] = "admin"
    deadline_s: Annotated[float, Field(ge=0)]
    """What still runs so many seconds later is told and ended."""


class ResumeRequested(Request, frozen=True):
    """Lift a drain; a worker lifts only its own."""

    type: Literal["resume_requested"] = "resume_requested"
    node: NodeId
    why: Literal["admin", "worker"] = "admin"


class LabelsRequested(Request, frozen=True):
    """Change a node's labels, whatever it says of itself."""

    type: Literal["labels_requested"] = "labels_requested"
    node: NodeId
    how: Literal["merge", "replace", "return"]
    """Change those named; have those named and no others; leave all to the node itself again."""
    labels: dict[str, str | None] = {}
    """None: taken away."""


class ReplicaCapRequested(Request, frozen=True):
    """So many replicas of one model on a node at most; 0: no cap; None: what the worker says."""

    type: Literal["replica_cap_requested"] = "replica_cap_requested"
    node: NodeId
    replicas_per_model: Annotated[int, Field(ge=0)] | None


class VramBudgetRequested(Request, frozen=True):
    """So much of a node's devices for replicas at most; None: what the worker says."""

    type: Literal["vram_budget_requested"] = "vram_budget_requested"
    node: NodeId
    budget: VramBudget | None


class RemovalRequested(Request, frozen=True):
    """Take a node out of the mesh for good: its key can't come back. What runs there is drained first."""

    type: Literal["removal_requested"] = "removal_requested"
    node: NodeId
    why: str = ""
    force: bool = False
    """Without a drain: replicas that run there are lost and replaced."""
    deadline_s: Annotated[float, Field(ge=0)] | None = None
    """Of the drain; None: nothing is drained, and what runs there makes the request be refused."""


class BrakeLiftRequested(Request, frozen=True):
    """What is silent is really gone: let it be replaced."""

    type: Literal["brake_lift_requested"] = "brake_lift_requested"
    why: str = ""


class UpgradeFinishRequested(Request, frozen=True):
    """Every part of the mesh is upgraded: let facts be written in their newest versions from here on."""

    type: Literal["upgrade_finish_requested"] = "upgrade_finish_requested"


class TokenRequested(Request, frozen=True):
    """A new registration token. Its secret stays with who asked."""

    type: Literal["token_requested"] = "token_requested"
    token: TokenId
    hash: str
    """SHA-256 of the secret, in hex."""
    name: str = ""
    approves: bool = False
    lasts_s: Annotated[float, Field(gt=0)] | None = None
    """Seconds from the request; None: until it is revoked."""
    most_waiting: Annotated[int, Field(ge=1)] | None = None
    """As in `token.created`."""


class TokenRevocationRequested(Request, frozen=True):
    """Let nobody join by a token any more."""

    type: Literal["token_revocation_requested"] = "token_revocation_requested"
    token: TokenId


class EngineProfileRequested(Versioned, Request, frozen=True):
    """Let the mesh know an engine by this profile; another one of that name is replaced."""

    type: Literal["engine_profile_requested"] = "engine_profile_requested"
    profile: EngineProfile

    @property
    def needs(self) -> int:
        return self.profile.needs


class EngineProfileWithdrawalRequested(Request, frozen=True):
    """Let the mesh forget an engine that no model uses."""

    type: Literal["engine_profile_withdrawal_requested"] = "engine_profile_withdrawal_requested"
    engine: EngineName


class BackendRequested(Request, frozen=True):
    """Let nodes install an engine by this recipe; another one of that engine is replaced."""

    type: Literal["backend_requested"] = "backend_requested"
    recipe: BackendRecipe
    profile: EngineProfile | None = None
    """Of the engine, where the mesh doesn't know it yet or by another."""


class BackendWithdrawalRequested(Request, frozen=True):
    """Let nodes install an engine as Weft's own catalogue says, or not at all."""

    type: Literal["backend_withdrawal_requested"] = "backend_withdrawal_requested"
    engine: EngineName


class BackendUpgradeRequested(Request, frozen=True):
    """Replicas of this engine are to run in what its recipe says today."""

    type: Literal["backend_upgrade_requested"] = "backend_upgrade_requested"
    engine: EngineName


class BackendInstallRequested(Request, frozen=True):
    """Have a node install an engine before a replica needs it."""

    type: Literal["backend_install_requested"] = "backend_install_requested"
    node: NodeId
    engine: EngineName


class BackendRemovalRequested(Request, frozen=True):
    """Have a node remove what it installed of an engine."""

    type: Literal["backend_removal_requested"] = "backend_removal_requested"
    node: NodeId
    engine: EngineName
    version: Annotated[str, Field(max_length=64)] = ""
    """Of this version alone; empty: all."""


class PolicyRequested(Request, frozen=True):
    """Let models be placed by this policy; another one of that name is replaced."""

    type: Literal["policy_requested"] = "policy_requested"
    policy: PlacementPolicy


class PolicyWithdrawalRequested(Request, frozen=True):
    """Forget a policy that no model names, and that isn't the mesh's own."""

    type: Literal["policy_withdrawal_requested"] = "policy_withdrawal_requested"
    name: PolicyName


class PolicyChoiceRequested(Request, frozen=True):
    """Let models that name no policy be placed by this one."""

    type: Literal["policy_choice_requested"] = "policy_choice_requested"
    name: PolicyName


class SecretRequested(Request, frozen=True):
    """Keep a value for a name; the value lies sealed to the registry's key in the bucket of secrets."""

    type: Literal["secret_requested"] = "secret_requested"
    name: SecretName
    sealed: SealedId


class SecretRemovalRequested(Request, frozen=True):
    """Forget a secret that no live revision names."""

    type: Literal["secret_removal_requested"] = "secret_removal_requested"
    name: SecretName


class FilesFetchRequested(Request, frozen=True):
    """Have nodes fetch the files of a model's present spec, and keep them."""

    type: Literal["files_fetch_requested"] = "files_fetch_requested"
    model: ModelId
    nodes: FileNodes = ()
    """These; none: as many as `count` says are chosen among those that lack them."""
    count: Annotated[int, Field(ge=0, le=MOST_FILE_NODES)] = 0


class FilesPinRequested(Request, frozen=True):
    """Have nodes keep files that lie there."""

    type: Literal["files_pin_requested"] = "files_pin_requested"
    files: FilesDigest
    nodes: FileNodes = ()
    """These; none: all that have them."""


class FilesUnpinRequested(Request, frozen=True):
    """Let nodes keep files no longer than they need them."""

    type: Literal["files_unpin_requested"] = "files_unpin_requested"
    files: FilesDigest
    nodes: FileNodes = ()
    """These; none: all that keep them."""


class FilesRemovalRequested(Request, frozen=True):
    """Have nodes remove files, each once nothing there uses them."""

    type: Literal["files_removal_requested"] = "files_removal_requested"
    files: FilesDigest
    nodes: FileNodes = ()
    """These; none: all that have or keep them."""


RegistryRequest = (
    JoinRequested
    | ApprovalRequested
    | RejectionRequested
    | CordonRequested
    | UncordonRequested
    | DrainRequested
    | ResumeRequested
    | LabelsRequested
    | ReplicaCapRequested
    | VramBudgetRequested
    | RemovalRequested
    | BrakeLiftRequested
    | UpgradeFinishRequested
    | TokenRequested
    | TokenRevocationRequested
    | EngineProfileRequested
    | EngineProfileWithdrawalRequested
    | BackendRequested
    | BackendWithdrawalRequested
    | BackendUpgradeRequested
    | BackendInstallRequested
    | BackendRemovalRequested
    | PolicyRequested
    | PolicyWithdrawalRequested
    | PolicyChoiceRequested
    | SecretRequested
    | SecretRemovalRequested
    | FilesFetchRequested
    | FilesPinRequested
    | FilesUnpinRequested
    | FilesRemovalRequested
)
