"""Questions to a node about its files, by the reconciler. The node answers as its machine."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.engines.profile import FileFormat
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.values import EngineName
from weft_contracts.subjects import Kind


class _Inspection(Fact, frozen=True):
    kind: ClassVar[Kind] = "inspection"


class Requested(_Inspection, frozen=True):
    """What does `source` hold on your disk, and can this engine load it?"""

    type: Literal["requested"] = "requested"
    source: str
    """See `source_keys.source_key`."""
    engine: EngineName
    formats: Annotated[tuple[FileFormat, ...], Field(exclude_if=lambda formats: not formats)] = ()
    """That the engine loads, for a node that doesn't know the engine yet; empty: it is one that Weft comes with."""


InspectionFact = Annotated[Requested, Field()]
