"""How engines are installed, as data: the catalogue that Weft comes with, and how entries are read and refused."""

import functools
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType
from typing import cast

from weft_contracts.backends.faults import fault_of_recipe
from weft_contracts.backends.reading import BadRecipe, document, recipe_of
from weft_contracts.backends.recipe import BackendRecipe, BackendVariant, SystemNeed
from weft_contracts.backends.source_build import TOOLS, BuildTool, SourceBuild, environment_of
from weft_contracts.facts.values import EngineName

__all__ = [
    "TOOLS",
    "BackendRecipe",
    "BackendVariant",
    "BadRecipe",
    "BuildTool",
    "Recipes",
    "SourceBuild",
    "SystemNeed",
    "builtin_recipes",
    "document",
    "environment_of",
    "fault_of_recipe",
    "recipe_of",
]

Recipes = Mapping[EngineName, BackendRecipe]


@functools.cache
def builtin_recipes() -> Recipes:
    """The catalogue that Weft comes with, read once."""
    text = resources.files(__name__).joinpath("builtin.yaml").read_text(encoding="utf-8")
    recipes = [recipe_of(body) for body in cast("list[object]", document(text))]
    return MappingProxyType({recipe.engine: recipe for recipe in recipes})
