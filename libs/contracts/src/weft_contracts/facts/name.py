"""Claims on names that must be unique."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Fact
from weft_contracts.subjects import Kind


class _Name(Fact, frozen=True):
    kind: ClassVar[Kind] = "name"


class Claimed(_Name, frozen=True):
    type: Literal["claimed"] = "claimed"
    name: str
    owner: str
    """The id of the node or model that bears it."""


class Released(_Name, frozen=True):
    type: Literal["released"] = "released"


NameFact = Annotated[Claimed | Released, Field(discriminator="type")]
