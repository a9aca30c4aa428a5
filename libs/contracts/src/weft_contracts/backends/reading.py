"""Reads recipes as people write them, in YAML: strictly, and without a word of what a parser would say."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from weft_contracts.backends.recipe import BackendRecipe, BackendVariant, SystemNeed
from weft_contracts.backends.source_build import SourceBuild

MOST_TEXT = 64 * 1024
MOST_DEPTH = 32


class BadRecipe(ValueError):
    """A recipe that can't be used; the text is one sentence."""


def document(text: str) -> object:
    """What a YAML text says, in plain values. Raises BadRecipe."""
    import yaml  # here: whoever only carries recipes needs no parser

    if len(text) > MOST_TEXT:
        raise BadRecipe(f"it has {len(text)} characters, {MOST_TEXT} are allowed")
    try:
        opening = (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)
        opening += (yaml.BlockSequenceStartToken, yaml.BlockMappingStartToken)
        closing = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
        depth = 0
        for token in cast("Iterator[object]", yaml.scan(text)):
            depth += isinstance(token, opening) - isinstance(token, closing)
            if depth > MOST_DEPTH:  # the scanner looks at every level for every token: 30,000 take it 15 s
                raise BadRecipe(f"it is nested more than {MOST_DEPTH} levels deep")
            if isinstance(token, yaml.AliasToken):
                raise BadRecipe("it uses an alias (*name), which may stand for any number of copies: write it out")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, BadRecipe):
            raise
        raise BadRecipe(f"it is no YAML: {' '.join(str(error).split())[:200]}") from None


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
