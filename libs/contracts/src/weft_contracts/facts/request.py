"""Requests for change, by the gateway; their outcomes, by the services that own them."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.aliases import AliasRule, AliasTargets
from weft_contracts.backends.recipe import BackendRecipe
from weft_contracts.engines.profile import EngineProfile
from weft_contracts.facts.fact import Fact, Versioned
from weft_contracts.facts.values import Addresses, Caps, EngineName, ModelSpec, NodeKind, Scope, VramBudget
from weft_contracts.ids import KeyId, ModelId, NodeId, TokenId
from weft_contracts.secrets import SealedId, SecretName
from weft_contracts.subjects import Kind


class _Request(Fact, frozen=True):
    kind: ClassVar[Kind] = "request"


class JoinRequested(_Request, frozen=True):
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


class ApprovalRequested(_Request, frozen=True):
    type: Literal["approval_requested"] = "approval_requested"
    node: NodeId


class RejectionRequested(_Request, frozen=True):
    """Turn a node away that waits for approval."""

    type: Literal["rejection_requested"] = "rejection_requested"
    node: NodeId
    why: str


class CordonRequested(_Request, frozen=True):
    """Place nothing new on a node."""

    type: Literal["cordon_requested"] = "cordon_requested"
    node: NodeId
    why: str = ""


class UncordonRequested(_Request, frozen=True):
    """Lift a cordon."""

    type: Literal["uncordon_requested"] = "uncordon_requested"
    node: NodeId
    why: str = ""


class DrainRequested(_Request, frozen=True):
    """Empty a node: what runs there is replaced elsewhere, finished and retired."""

    type: Literal["drain_requested"] = "drain_requested"
    node: NodeId
    why: Literal["admin", "worker"] = "admin"
    deadline_s: Annotated[float, Field(ge=0)]
    """What still runs so many seconds later is told and ended."""


class ResumeRequested(_Request, frozen=True):
    """Lift a drain; a worker lifts only its own."""

    type: Literal["resume_requested"] = "resume_requested"
    node: NodeId
    why: Literal["admin", "worker"] = "admin"


class LabelsRequested(_Request, frozen=True):
    """Change a node's labels, whatever it says of itself."""

    type: Literal["labels_requested"] = "labels_requested"
    node: NodeId
    how: Literal["merge", "replace", "return"]
    """Change those named; have those named and no others; leave all to the node itself again."""
    labels: dict[str, str | None] = {}
    """None: taken away."""


class ReplicaCapRequested(_Request, frozen=True):
    """So many replicas of one model on a node at most; 0: no cap; None: what the worker says."""

    type: Literal["replica_cap_requested"] = "replica_cap_requested"
    node: NodeId
    replicas_per_model: Annotated[int, Field(ge=0)] | None


class VramBudgetRequested(_Request, frozen=True):
    """So much of a node's devices for replicas at most; None: what the worker says."""

    type: Literal["vram_budget_requested"] = "vram_budget_requested"
    node: NodeId
    budget: VramBudget | None


class RemovalRequested(_Request, frozen=True):
    """Take a node out of the mesh for good: its key can't come back. What runs there is drained first."""

    type: Literal["removal_requested"] = "removal_requested"
    node: NodeId
    why: str = ""
    force: bool = False
    """Without a drain: replicas that run there are lost and replaced."""
    deadline_s: Annotated[float, Field(ge=0)] | None = None
    """Of the drain; None: nothing is drained, and what runs there makes the request be refused."""


class BrakeLiftRequested(_Request, frozen=True):
    """What is silent is really gone: let it be replaced."""

    type: Literal["brake_lift_requested"] = "brake_lift_requested"
    why: str = ""


class UpgradeFinishRequested(_Request, frozen=True):
    """Every part of the mesh is upgraded: let facts be written in their newest versions from here on."""

    type: Literal["upgrade_finish_requested"] = "upgrade_finish_requested"


class TokenRequested(_Request, frozen=True):
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


class TokenRevocationRequested(_Request, frozen=True):
    """Let nobody join by a token any more."""

    type: Literal["token_revocation_requested"] = "token_revocation_requested"
    token: TokenId


class KeyRequested(_Request, frozen=True):
    """A new API key. Its secret stays with who asked, its name with the bucket `people`."""

    type: Literal["key_requested"] = "key_requested"
    key: KeyId
    hash: str
    """SHA-256 of the secret, in hex."""
    prefix: str
    scopes: tuple[Scope, ...]
    models: tuple[str, ...] | None = None
    """None: all."""
    lasts_s: Annotated[float, Field(gt=0)] | None = None
    """Seconds from the request; None: until it is revoked."""


class KeyRevocationRequested(_Request, frozen=True):
    """Let nothing new begin with an API key."""

    type: Literal["key_revocation_requested"] = "key_revocation_requested"
    key: KeyId


class EngineProfileRequested(Versioned, _Request, frozen=True):
    """Let the mesh know an engine by this profile; another one of that name is replaced."""

    type: Literal["engine_profile_requested"] = "engine_profile_requested"
    profile: EngineProfile

    @property
    def needs(self) -> int:
        return self.profile.needs


class EngineProfileWithdrawalRequested(_Request, frozen=True):
    """Let the mesh forget an engine that no model uses."""

    type: Literal["engine_profile_withdrawal_requested"] = "engine_profile_withdrawal_requested"
    engine: EngineName


class BackendRequested(_Request, frozen=True):
    """Let nodes install an engine by this recipe; another one of that engine is replaced."""

    type: Literal["backend_requested"] = "backend_requested"
    recipe: BackendRecipe
    profile: EngineProfile | None = None
    """Of the engine, where the mesh doesn't know it yet or by another."""


class BackendWithdrawalRequested(_Request, frozen=True):
    """Let nodes install an engine as Weft's own catalogue says, or not at all."""

    type: Literal["backend_withdrawal_requested"] = "backend_withdrawal_requested"
    engine: EngineName


class BackendUpgradeRequested(_Request, frozen=True):
    """Replicas of this engine are to run in what its recipe says today."""

    type: Literal["backend_upgrade_requested"] = "backend_upgrade_requested"
    engine: EngineName


class BackendInstallRequested(_Request, frozen=True):
    """Have a node install an engine before a replica needs it."""

    type: Literal["backend_install_requested"] = "backend_install_requested"
    node: NodeId
    engine: EngineName


class BackendRemovalRequested(_Request, frozen=True):
    """Have a node remove what it installed of an engine."""

    type: Literal["backend_removal_requested"] = "backend_removal_requested"
    node: NodeId
    engine: EngineName
    version: Annotated[str, Field(max_length=64)] = ""
    """Of this version alone; empty: all."""


class SecretRequested(_Request, frozen=True):
    """Keep a value for a name; the value lies sealed to the registry's key in the bucket of secrets."""

    type: Literal["secret_requested"] = "secret_requested"
    name: SecretName
    sealed: SealedId


class SecretRemovalRequested(_Request, frozen=True):
    """Forget a secret that no live revision names."""

    type: Literal["secret_removal_requested"] = "secret_removal_requested"
    name: SecretName


class DeployRequested(Versioned, _Request, frozen=True):
    """A model, or a new revision of the model that bears this name."""

    type: Literal["deploy_requested"] = "deploy_requested"
    newest: ClassVar[int] = 3
    name: str
    spec: ModelSpec

    @property
    def needs(self) -> int:
        return self.spec.needs


class TrialRequested(Versioned, _Request, frozen=True):
    """What would come of deploying this? Nodes are asked what they hold; nothing else changes."""

    type: Literal["trial_requested"] = "trial_requested"
    newest: ClassVar[int] = 3
    name: str
    spec: ModelSpec

    @property
    def needs(self) -> int:
        return self.spec.needs


class DeleteRequested(_Request, frozen=True):
    type: Literal["delete_requested"] = "delete_requested"
    model: ModelId


class RetryRequested(_Request, frozen=True):
    """Lift `unservable` from a model."""

    type: Literal["retry_requested"] = "retry_requested"
    model: ModelId


class UnloadRequested(_Request, frozen=True):
    """Take a model off a node."""

    type: Literal["unload_requested"] = "unload_requested"
    model: ModelId
    node: NodeId
    deadline_s: Annotated[float, Field(ge=0)] = 60.0
    """How long what serves there may wait for others to serve in its place."""


class AliasRequested(_Request, frozen=True):
    """Let a name be an alias over these models; what it was an alias of before is replaced whole."""

    type: Literal["alias_requested"] = "alias_requested"
    name: str
    rule: AliasRule
    targets: AliasTargets


class AliasRemovalRequested(_Request, frozen=True):
    """Let a name be no alias any more. Its models stay."""

    type: Literal["alias_removal_requested"] = "alias_removal_requested"
    name: str


class Fulfilled(_Request, frozen=True):
    """Done, in the same batch as this. `result` names what arose."""

    type: Literal["fulfilled"] = "fulfilled"
    result: dict[str, str] = {}


class Rejected(_Request, frozen=True):
    """Refused; nothing changed."""

    type: Literal["rejected"] = "rejected"
    status: int
    """The HTTP status that says it best: 400, 401, 403, 404, 409, 422, 429, 503."""
    reason: str
    """One sentence: what, where, what would be right."""


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
    | SecretRequested
    | SecretRemovalRequested
)
ReconcilerRequest = (
    DeployRequested
    | TrialRequested
    | DeleteRequested
    | RetryRequested
    | UnloadRequested
    | AliasRequested
    | AliasRemovalRequested
)
GatewayRequest = KeyRequested | KeyRevocationRequested
"""Which service owns a request: it alone answers it. The catalogue's `Entry.owner` is read off these unions."""

ChangeRequest = RegistryRequest | ReconcilerRequest | GatewayRequest
TaggedChangeRequest = Annotated[ChangeRequest, Field(discriminator="type")]
"""The same for fields that are read back from JSON: told apart by `type`, and not by trying one after the other."""
RequestFact = Annotated[ChangeRequest | Fulfilled | Rejected, Field(discriminator="type")]
