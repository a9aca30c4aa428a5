"""What an error answers."""

from typing import NotRequired

from typing_extensions import TypedDict


class Problem(TypedDict):
    """RFC 9457: what was wrong, in one sentence. `detail`: what, where, what would be right; `param`: the field at
    fault; `request`: the request for change that was rejected, or has no outcome yet."""

    type: str
    title: str
    status: int
    detail: str
    code: NotRequired[str]
    param: NotRequired[str]
    request: NotRequired[str]
