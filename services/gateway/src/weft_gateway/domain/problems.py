"""Error bodies: OpenAI's error object on its routes, RFC 9457 problem bodies elsewhere."""

from http import HTTPStatus

import msgspec

from weft_gateway.domain.refused import Refused

_encode = msgspec.json.Encoder().encode
PROBLEM = "application/problem+json"


def phrase(status: int) -> str:
    """The status in words; 529 is not in the standard's list."""
    if status == 529:
        return "All Busy"
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def openai_error(refused: Refused) -> bytes:
    """`{"error": {message, type, param, code}}`."""
    error = {
        "message": refused.sentence,
        "type": refused.type,
        "param": refused.param,
        "code": refused.code,
    }
    return _encode({"error": error})


def problem(refused: Refused) -> bytes:
    """`{type, title, status, detail, …}`; the source of the form is RFC 9457."""
    body: dict[str, object] = {
        "type": "about:blank",
        "title": phrase(refused.status),
        "status": refused.status,
        "detail": refused.sentence,
    }
    if refused.code:
        body["code"] = refused.code
    if refused.param:
        body["param"] = refused.param
    return _encode(body | refused.extra)
