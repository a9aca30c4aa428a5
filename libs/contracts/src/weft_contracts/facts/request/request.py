"""What every request for change is, and how it ends."""

from typing import ClassVar, Literal

from weft_contracts.facts.fact import Fact
from weft_contracts.subjects import Kind


class Request(Fact, frozen=True):
    kind: ClassVar[Kind] = "request"


class Fulfilled(Request, frozen=True):
    """Done, in the same batch as this. `result` names what arose."""

    type: Literal["fulfilled"] = "fulfilled"
    result: dict[str, str] = {}


class Rejected(Request, frozen=True):
    """Refused; nothing changed."""

    type: Literal["rejected"] = "rejected"
    status: int
    """The HTTP status that says it best: 400, 401, 403, 404, 409, 422, 429, 503."""
    reason: str
    """One sentence: what, where, what would be right."""
