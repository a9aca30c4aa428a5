"""The correlation id of a request: the caller's where it is sane, else one of ours."""

import re

from weft_gateway.domain.refused import Refused

_SANE = re.compile(r"[A-Za-z0-9._:-]{1,64}")


def accepted(given: str | None) -> str | None:
    """The caller's `x-request-id`; None if there is none. Raises Refused for one that can't be taken."""
    if given is None:
        return None
    if _SANE.fullmatch(given) is None:
        raise Refused(
            400,
            "`x-request-id` must have 1 to 64 characters of A-Z, a-z, 0-9, '.', '_', ':' and '-'.",
            param="x-request-id",
        )
    return given
