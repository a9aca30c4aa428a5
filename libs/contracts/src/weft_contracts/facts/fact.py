"""What every fact is: a frozen, versioned value in the past tense."""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from weft_contracts.subjects import Kind

Count = Annotated[int, Field(ge=0, le=1 << 53)]
"""A number of bytes or things, as a machine may say it."""


class Value(BaseModel, frozen=True, extra="ignore", allow_inf_nan=False, defer_build=True):
    """A part of a fact. Unknown fields are passed over: schemas change by adding.

    Its validator is made at first use: many are only used as parts of their kind's.
    """


class Fact(Value, frozen=True):
    """One thing that happened. `type` and `v` tell readers how to read it."""

    kind: ClassVar[Kind]
    type: str
    v: Annotated[int, Field(ge=1, le=1)] = 1


class Versioned(Fact, frozen=True):
    """A fact of several versions: it is always of the lowest one that can say what it says."""

    newest: ClassVar[int] = 2
    """The highest version that this code knows."""
    v: Annotated[int, Field(ge=1, le=5)] = 1

    @property
    def needs(self) -> int:
        """The lowest version that can say this."""
        raise NotImplementedError

    def model_post_init(self, context: Any, /) -> None:
        if self.v > self.newest:
            raise ValueError(f"version {self.v} of {self.type} is newer than {self.newest}, the newest that is known")
        if self.v < (needs := self.needs):
            object.__setattr__(self, "v", needs)


class Voided(Fact, frozen=True):
    """An operator set aside a commit of this aggregate that could not be read: the aggregate is decided again.

    Any kind's aggregate may carry it.
    """

    type: str = "voided"
    sequence: int
    """Log position of the commit that is void."""
    why: str


class Unknown(Fact, frozen=True):
    """A fact of a type or version that this reader's catalogue doesn't have. Never written."""

    type: str
    v: int = 0
    skippable: bool
    """Whether its writer's catalogue lets a reader pass over it."""


class Unreadable(Fact, frozen=True):
    """A commit whose bytes could not be read as facts. Never written."""

    type: str = "unreadable"
    why: str
