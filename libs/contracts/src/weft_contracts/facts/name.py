"""Claims on names that must be unique: a node's, a model's, or an alias over several models."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.aliases import AliasRule, AliasTargets
from weft_contracts.facts.fact import Fact
from weft_contracts.subjects import Kind


class _Name(Fact, frozen=True):
    kind: ClassVar[Kind] = "name"


class Claimed(_Name, frozen=True):
    type: Literal["claimed"] = "claimed"
    name: str
    owner: str
    """The id of the node or model that bears it."""


class Aliased(_Name, frozen=True):
    """The name is an alias from here on, and nothing that it was before; one that it was is replaced whole.

    It stands where a model's claim on the name would stand, so one guard keeps a name from being both.
    """

    type: Literal["aliased"] = "aliased"
    name: str
    rule: AliasRule
    targets: AliasTargets


class Released(_Name, frozen=True):
    type: Literal["released"] = "released"


NameFact = Annotated[Claimed | Aliased | Released, Field(discriminator="type")]
