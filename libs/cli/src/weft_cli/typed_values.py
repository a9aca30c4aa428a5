"""What `weft deploy` is told in one word that holds several: `K=V`, `K=V,…`, `NAME=PATH`."""

import json
from typing import cast

from weft_client.failure import Exit, Failure
from weft_client.sources import adapter_path

NONE = "none"


def selector_of(text: str) -> dict[str, str]:
    """Labels as they are typed: `zone=a,!old`. Raises Failure."""
    found: dict[str, str] = {}
    for part in (each.strip() for each in text.split(",")):
        key, equals, value = part.partition("=")
        if not key.removeprefix("!") or key.startswith("!") == bool(equals):
            raise Failure(f"--selector {text}: want KEY=VALUE for a label that nodes bear, !KEY for none", Exit.USAGE)
        found[key] = value
    return found


def engine_arg(text: str) -> tuple[str, object]:
    """KEY=VALUE; the value is a JSON number, boolean, list or object where it reads as one, else the text itself."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise Failure(f"--engine-arg {text}: want KEY=VALUE", Exit.USAGE)
    try:
        parsed: object = json.loads(value)
    except ValueError:
        parsed = value
    return key, cast(object, parsed) if isinstance(parsed, bool | int | float | list | dict) else value


def lora(text: str) -> dict[str, object]:
    """NAME=PATH or NAME:SCALE=PATH."""
    given, equals, path = text.partition("=")
    name, colon, scale = given.partition(":")
    wrong = Failure(f"--lora {text}: want NAME=PATH or NAME:SCALE=PATH, the scale as a number", Exit.USAGE)
    if not equals or not name or not path:
        raise wrong
    try:
        factor = float(scale) if colon else 1.0
    except ValueError:
        raise wrong from None
    return {"name": name, "path": adapter_path(path), "scale": factor}


def scaling_of(text: str) -> dict[str, float]:
    """Figures that a model is sized by: `spare=0.5,up_after_s=10`; `none`: it has none of its own. Raises Failure."""
    from pydantic import ValidationError
    from weft_contracts.facts.sizing import OwnScaling

    if text == NONE:
        return {}
    names = ", ".join(OwnScaling.model_fields)
    found: dict[str, float] = {}
    for part in (each.strip() for each in text.split(",")):
        key, _, value = part.partition("=")
        if key not in OwnScaling.model_fields or key in found:
            what = "is there twice" if key in found else f"is none of {names}"
            raise Failure(f"--scaling {text}: {key!r} {what}; want K=V,… or {NONE}", Exit.USAGE)
        try:
            found[key] = float(value)
        except ValueError:
            raise Failure(f"--scaling {key}={value}: want a number", Exit.USAGE) from None
    try:
        return OwnScaling.model_validate(found).said
    except ValidationError as error:
        wrong = error.errors()[0]
        key = wrong["loc"][0]
        told = wrong["msg"].replace("Input should be", "want", 1)
        raise Failure(f"--scaling {key}={found[str(key)]:g}: {told}", Exit.USAGE) from None
