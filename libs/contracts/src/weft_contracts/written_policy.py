"""Reads a placement policy as people write it: plain values, as YAML or JSON say them."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

from weft_contracts.policies import PlacementPolicy, PolicyWeights


class UnreadablePolicy(ValueError):
    """Values that make no policy; which field and what would be right, in one sentence."""


def policy_of(body: object) -> PlacementPolicy:
    """A policy of plain values; a field that there is not is refused, for it may be a typo. Raises UnreadablePolicy."""
    if not isinstance(body, Mapping):
        raise UnreadablePolicy("it holds no fields: want name and weights")
    given = dict(cast("Mapping[Any, Any]", body))
    _known(given, "", list(PlacementPolicy.model_fields))
    if isinstance(weights := given.get("weights"), Mapping):
        _known(cast("Mapping[Any, Any]", weights), "weights.", list(PolicyWeights.model_fields))
    if given.get("apart") is False:  # what YAML makes of `no`
        given["apart"] = "no"
    try:
        return PlacementPolicy.model_validate(given, strict=True)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise UnreadablePolicy(f"{where}: {_said(where, fault['type'], fault['msg'])}") from None


def _known(given: Mapping[Any, Any], under: str, names: list[str]) -> None:
    for name in given:
        if name not in names:
            raise UnreadablePolicy(f"{under}{name}: is no field of a policy: want one of {', '.join(names)}")


def _said(where: str, type: str, message: str) -> str:
    match where, type:
        case "weights", "missing":
            return f"is missing: want a weight for one of {', '.join(PolicyWeights.model_fields)}"
        case "name", _:
            return "want a small letter, then small letters, digits and -, 63 characters at most"
        case _:
            return message.removeprefix("Value error, ").replace("Input should be", "want", 1)
