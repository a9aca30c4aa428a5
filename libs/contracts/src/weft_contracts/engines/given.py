"""What a spec gives an engine as arguments, beside what its profile asks for: before any engine is asked."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from weft_contracts.engines.profile import EngineProfile
from weft_contracts.engines.server_url import fault_of_url

SECRET: Final = "secret:"
_SECRET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def fault_of_given(profile: EngineProfile, given: Mapping[str, object]) -> str | None:
    """The first fault of required arguments and of those with a form, as a sentence; None where there is none.

    Types and ranges are the engine host's to check: it is of the release that the profile is of.
    """
    return next(_faults(profile, given), None)


def _faults(profile: EngineProfile, given: Mapping[str, object]) -> Iterator[str]:
    for name, argument in profile.arguments.items():
        value = given.get(name)
        at = f"engine_args.{name}"
        if argument.required and value in (None, ""):
            yield f"{at} is missing: the engine {profile.name} needs it"
        elif value is None or not argument.form:
            continue
        elif not isinstance(value, str):
            yield f"{at} is no text"
        elif argument.form == "server_url" and (fault := fault_of_url(value)) is not None:
            yield f"{at} {fault}"
        elif argument.form == "secret" and not _names_a_secret(value):
            yield f"{at} holds a value, which would stand in the log: want {SECRET}NAME, the name of a secret"


def _names_a_secret(value: str) -> bool:
    return value.startswith(SECRET) and _SECRET_NAME.fullmatch(value.removeprefix(SECRET)) is not None
