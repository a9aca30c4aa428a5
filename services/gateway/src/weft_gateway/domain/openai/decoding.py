"""A JSON body as a typed request; what does not fit becomes one sentence."""

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

from weft_gateway.domain.refused import Refused

B = TypeVar("B")
C = TypeVar("C")
_AT = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>[^`]+)`")
_TYPE = re.compile(r"Expected `(?P<want>[^`]+)`, got `(?P<got>[^`]+)`")
_WORDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def decode(decoder: "msgspec.json.Decoder[B]", body: bytes) -> B:
    """Raises Refused with status 400."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _misfit(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not body:
            raise Refused(400, "The body is empty; a JSON object is expected.", code="malformed_json") from None
        why = str(error).removeprefix("JSON is malformed: ")
        raise Refused(400, f"The body is not JSON: {why}.", code="malformed_json") from None
    except RecursionError:
        raise _too_deep() from None


def converted(value: object, type: type[B], at: str) -> B:
    """A value inside a body, decoded before, as the typed one that it must be. Raises Refused with status 400."""
    try:
        return msgspec.convert(value, type)
    except msgspec.ValidationError as error:
        raise _misfit(str(error), at) from None


def checked(decoder: "msgspec.json.Decoder[B]", body: bytes, rule: Callable[[B], C]) -> C:
    """What a rule makes of a body whose schemas it walks through. Raises Refused."""
    try:
        return rule(decode(decoder, body))
    except RecursionError:  # of a schema that decoding just managed
        raise _too_deep() from None


def _too_deep() -> Refused:
    """The refusal of values in values in values."""
    return Refused(400, "The body is nested too deeply; JSON here has some hundred levels.", code="malformed_json")


def _misfit(text: str, within: str = "") -> Refused:
    at = _AT.search(text)
    inside = at["path"].removesuffix("[...]") if at else ""  # of a value in an object: the object
    path = _join(within, inside)
    if found := _MISSING.search(text):
        field = _join(path, found["field"])
        return Refused(400, f"`{field}` is missing.", param=field, code="missing_field")
    if found := _UNKNOWN.search(text):
        field = _join(path, found["field"])
        return Refused(
            400, f"`{field}` is not a field that is known here; leave it out.", param=field, code="unknown_field"
        )
    if found := _TYPE.search(text):
        got, want = _word(found["got"]), _word(found["want"])
        where = f"`{path}`" if path else "The body"
        return Refused(400, f"{where} is {got}; it must be {want}.", param=path or None, code="wrong_type")
    where, what = f"`{path}`" if path else "The body", _AT.sub("", text)
    return Refused(400, f"{where} does not fit: {what[:1].lower()}{what[1:]}.", param=path or None)


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path and field else path or field


def _word(types: str) -> str:
    return " or ".join(_WORDS.get(part.strip(), part.strip()) for part in types.split("|"))
