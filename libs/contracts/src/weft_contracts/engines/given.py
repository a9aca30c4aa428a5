"""What a spec gives an engine as arguments, beside what its profile asks for: before any engine is asked."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, JsonValue, ValidationError, create_model

from weft_contracts.engines.profile import Argument, ArgumentType, EngineProfile
from weft_contracts.engines.server_url import fault_of_url

SECRET: Final = "secret:"
_SECRET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_TYPES: Final[Mapping[ArgumentType, Any]] = {
    "boolean": bool,
    "integer": int,
    "number": float,
    "text": str,
    "list": list[JsonValue],
    "object": dict[str, JsonValue],
}


def fault_of_given(profile: EngineProfile, given: Mapping[str, object]) -> str | None:
    """The first fault, as a sentence; None where there is none.

    An argument that the profile doesn't name, one that it asks for and that lacks, a type, a range, a choice or a form
    that it doesn't allow. What only the engine can know, such as the keys of an object, its host finds out.
    """
    return next(_faults(profile, given), None)


def _faults(profile: EngineProfile, given: Mapping[str, object]) -> Iterator[str]:
    for name in (name for name in given if name not in profile.arguments):
        has = f"it has {', '.join(profile.arguments)}" if profile.arguments else "it has none"
        yield f"engine_args.{name[:64]} is no argument of the engine {profile.name} ({has})"
    for name, argument in profile.arguments.items():
        value = given.get(name)
        at = f"engine_args.{name}"
        if argument.required and value in (None, ""):
            yield f"{at} is missing: the engine {profile.name} needs it"
        elif name not in given:
            continue
        elif (fault := _of_value(argument, value)) is not None:
            yield f"{at}: {fault}"
        elif argument.form == "server_url" and (fault := fault_of_url(str(value))) is not None:
            yield f"{at} {fault}"
        elif argument.form == "secret" and not _names_a_secret(str(value)):
            yield f"{at} holds a value, which would stand in the log: want {SECRET}NAME, the name of a secret"


def _of_value(argument: Argument, value: object) -> str | None:
    try:
        _checks(argument).model_validate({"value": value})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        inside = "".join(f".{part}" for part in fault["loc"][1:])
        shown = "" if argument.form == "secret" else f", not {str(fault['input'])[:60]!r}"
        return f"{inside}{' ' if inside else ''}{fault['msg'][0].lower()}{fault['msg'][1:]}{shown}"
    return None


@lru_cache(maxsize=512)
def _checks(argument: Argument) -> type[BaseModel]:
    kind: Any = Literal[argument.choices] if argument.choices else _TYPES[argument.type]
    field: Any = Field(ge=argument.least, le=argument.most, gt=argument.above)
    return create_model("Argument", value=(kind, field))


def _names_a_secret(value: str) -> bool:
    return value.startswith(SECRET) and _SECRET_NAME.fullmatch(value.removeprefix(SECRET)) is not None
