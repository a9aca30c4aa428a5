"""A request that is not taken: its status, and one sentence that says what would be right."""

from collections.abc import Mapping
from typing import Literal

ErrorType = Literal["invalid_request_error", "not_found_error", "permission_error", "server_error", "overloaded_error"]


class Refused(Exception):
    """Ends a request. Rendered in the caller's dialect: OpenAI's error object or a problem body."""

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.param = param
        """The field at fault, as a path: `messages[0].content`."""
        self.code = code
        """A short word that programs can compare."""
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})
        """Further members of a problem body."""

    @property
    def type(self) -> ErrorType:
        """OpenAI's word for this kind of error."""
        match self.status:
            case 404:
                return "not_found_error"
            case 403:
                return "permission_error"
            case 429 | 529:
                return "overloaded_error"
            case status if status >= 500:
                return "server_error"
            case _:
                return "invalid_request_error"
