"""Reads recipes as people write them, in YAML."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from weft_contracts import yaml_document
from weft_contracts.backends.recipe import BackendRecipe, BackendVariant, SystemNeed
from weft_contracts.backends.source_build import SourceBuild
from weft_contracts.yaml_document import BadDocument


class BadRecipe(ValueError):
    """A recipe that can't be used; the text is one sentence."""


def document(text: str) -> object:
    """What a YAML text says, in plain values. Raises BadRecipe."""
    try:
        return yaml_document.document(text)
    except BadDocument as fault:
        raise BadRecipe(str(fault)) from None


def recipe_of(body: object) -> BackendRecipe:
    """A recipe of plain values; a field that there is not is refused, for it may be a typo. Raises BadRecipe."""
    if unknown := next(_unknown(body), None):
        raise BadRecipe(f"{unknown} is not a field of a recipe")
    try:
        return BackendRecipe.model_validate(body)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the whole"
        raise BadRecipe(f"{where}: {fault['msg'].removeprefix('Value error, ')}") from None


def _unknown(body: object) -> Iterator[str]:
    """Fields that no recipe has."""
    if not isinstance(body, Mapping):
        return
    recipe = cast("Mapping[str, Any]", body)
    yield from (str(name) for name in recipe if name not in BackendRecipe.model_fields)
    for at, variant in enumerate(_mappings(recipe.get("variants"))):
        yield from (f"variants.{at}.{name}" for name in variant if name not in BackendVariant.model_fields)
        for nth, need in enumerate(_mappings(variant.get("needs"))):
            yield from (f"variants.{at}.needs.{nth}.{name}" for name in need if name not in SystemNeed.model_fields)
        if isinstance(source := variant.get("source"), Mapping):
            said = cast("Mapping[str, Any]", source)
            yield from (f"variants.{at}.source.{name}" for name in said if name not in SourceBuild.model_fields)


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        for each in cast("Sequence[object]", value):
            yield cast("Mapping[str, Any]", each) if isinstance(each, Mapping) else {}
