"""Facts about the mesh as a whole, by the registry."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.backends.recipe import BackendRecipe
from weft_contracts.engines.profile import EngineProfile
from weft_contracts.facts.fact import Fact, Versioned
from weft_contracts.facts.values import EngineName
from weft_contracts.policies import PlacementPolicy, PolicyName
from weft_contracts.secrets import SealedId, SecretName
from weft_contracts.subjects import Kind


class _Mesh(Fact, frozen=True):
    kind: ClassVar[Kind] = "mesh"


class Founded(_Mesh, frozen=True):
    """The log's first fact."""

    type: Literal["founded"] = "founded"
    version: str


class BrakeSet(_Mesh, frozen=True):
    """So many nodes fell silent at once that the network or the log is the likelier culprit."""

    type: Literal["brake_set"] = "brake_set"
    silent: int
    healthy_before: int


class BrakeLifted(_Mesh, frozen=True):
    """What is silent still may be replaced."""

    type: Literal["brake_lifted"] = "brake_lifted"
    why: str
    by: str = ""
    """The operator who lifted it; empty: the leases came back."""


class FormatRaised(_Mesh, frozen=True):
    """From here on writers may write this version of a fact: every reader knows it."""

    type: Literal["format_raised"] = "format_raised"
    fact: str
    """`<kind>.<type>`."""
    version: int


class EngineProfileSet(Versioned, _Mesh, frozen=True):
    """The mesh knows an engine by this profile from here on, whatever it knew of it before."""

    type: Literal["engine_profile_set"] = "engine_profile_set"
    profile: EngineProfile

    @property
    def needs(self) -> int:
        return self.profile.needs


class EngineProfileWithdrawn(_Mesh, frozen=True):
    """The mesh knows this engine no more."""

    type: Literal["engine_profile_withdrawn"] = "engine_profile_withdrawn"
    engine: EngineName


class BackendSet(_Mesh, frozen=True):
    """Nodes install an engine by this recipe from here on, whatever it was before."""

    type: Literal["backend_set"] = "backend_set"
    recipe: BackendRecipe


class BackendWithdrawn(_Mesh, frozen=True):
    """What was told of how this engine is installed counts no more: Weft's own recipe does, where it has one."""

    type: Literal["backend_withdrawn"] = "backend_withdrawn"
    engine: EngineName


class BackendUpgraded(_Mesh, frozen=True):
    """Replicas that run in an environment of one of these recipes, and were placed before this, are replaced one after
    the other by such that run in what the recipe of today says."""

    type: Literal["backend_upgraded"] = "backend_upgraded"
    engine: EngineName
    superseded: Annotated[tuple[Annotated[str, Field(max_length=64)], ...], Field(max_length=256)]
    """Digests of variants; an empty one is of environments whose recipe nobody noted."""


class PolicySet(_Mesh, frozen=True):
    """Replicas of models that name this policy are placed by it from here on; those that run stay where they are."""

    type: Literal["policy_set"] = "policy_set"
    policy: PlacementPolicy


class PolicyWithdrawn(_Mesh, frozen=True):
    """There is no policy of this name any more."""

    type: Literal["policy_withdrawn"] = "policy_withdrawn"
    name: PolicyName


class PolicyChosen(_Mesh, frozen=True):
    """Models that name no policy are placed by this one from here on."""

    type: Literal["policy_chosen"] = "policy_chosen"
    name: PolicyName


class SecretSet(_Mesh, frozen=True):
    """A secret has another value from here on. Only its name stands here."""

    type: Literal["secret_set"] = "secret_set"
    name: SecretName
    version: int
    """The sequence of the request: each value of a name has a higher one, whatever was removed between them."""
    sealed: SealedId


class SecretRemoved(_Mesh, frozen=True):
    """There is no secret of this name any more."""

    type: Literal["secret_removed"] = "secret_removed"
    name: SecretName


MeshFact = Annotated[
    Founded
    | BrakeSet
    | BrakeLifted
    | FormatRaised
    | EngineProfileSet
    | EngineProfileWithdrawn
    | BackendSet
    | BackendWithdrawn
    | BackendUpgraded
    | PolicySet
    | PolicyWithdrawn
    | PolicyChosen
    | SecretSet
    | SecretRemoved,
    Field(discriminator="type"),
]
