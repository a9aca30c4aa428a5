"""What can be wrong with a recipe beside its types. Each fault is a sentence: where, what, and what would be right."""

import re
from collections.abc import Iterator

from weft_contracts.backends.recipe import MOST_BYTES, BackendRecipe, BackendVariant, numbers
from weft_contracts.backends.source_build import SourceBuild, faults_of
from weft_contracts.engines.profile import EngineProfile

_PINNED = re.compile(r"[^=<>!~,]+==[^*,]+")
MOST_DISK = 1 << 40
_KINDS = {"library": "lib", "device": "/dev/"}


def fault_of_recipe(recipe: BackendRecipe, profile: EngineProfile | None) -> str | None:
    """The first fault; None where there is none. `profile`: the engine's, as the mesh knows it or is told with it."""
    return next(_faults(recipe, profile), None)


def _faults(recipe: BackendRecipe, profile: EngineProfile | None) -> Iterator[str]:
    size = len(recipe.model_dump_json().encode())
    if size > MOST_BYTES:
        yield f"the recipe takes {size} bytes as JSON, {MOST_BYTES} are allowed: leave something out"
    if profile is None:
        yield f"the mesh knows no engine {recipe.engine}: send its profile with the recipe"
        return
    if profile.name != recipe.engine:
        yield f"the profile is of {profile.name} and the recipe of {recipe.engine}: want one engine"
    for at, variant in enumerate(recipe.variants):
        if variant.vendor not in profile.vendors:
            yield f"variants.{at}.vendor is {variant.vendor}: {recipe.engine} computes on {', '.join(profile.vendors)}"
        yield from (f"variants.{at}.{fault}" for fault in _variant(variant))


def _variant(variant: BackendVariant) -> Iterator[str]:
    least, below = numbers(variant.driver_least), numbers(variant.driver_below)
    if least and below and least >= below:
        yield f"driver_least is {variant.driver_least} and driver_below {variant.driver_below}: nothing lies between"
    if not 0 < variant.disk <= MOST_DISK:
        yield f"disk is {variant.disk}: want the bytes that it takes, up to {MOST_DISK}"
    for requirement in variant.hashes:
        if requirement not in variant.requirements:
            yield f"hashes.{requirement} is none of requirements"
        if _PINNED.fullmatch(requirement) is None:
            yield f"hashes.{requirement} names no single version: want name==version"
    if variant.locked and (without := [r for r in variant.requirements if r not in variant.hashes]):
        yield f"locked is true and {without[0]} has no hashes: give some for each requirement"
    if variant.source is not None:
        yield from _built(variant, variant.source)
    for need in variant.needs:
        if not need.name.startswith(_KINDS[need.kind]):
            yield f"needs: {need.name} is no {need.kind}"


def _built(variant: BackendVariant, source: SourceBuild) -> Iterator[str]:
    """What is built runs code of its own before anything is looked at, so it is one known archive."""
    wanted = f"{variant.package}=={variant.version}"
    if wanted not in variant.requirements:
        yield f"source is given and requirements lack {wanted}, which it would build"
    elif wanted not in variant.hashes:
        yield f"source is given and {wanted} has no hashes: what is built here is locked to one archive"
    for requirement in source.requirements:
        if _PINNED.fullmatch(requirement) is None:
            yield f"source.requirements: {requirement} names no single version: want name==version"
    yield from faults_of(source, variant.package)
