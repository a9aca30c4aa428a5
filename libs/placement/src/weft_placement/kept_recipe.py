"""What a revision's engine is installed by: the mesh's recipe, or what it served in before where that failed."""

from weft_contracts.backends import BackendRecipe, BackendVariant, Recipes
from weft_contracts.ids import ModelId
from weft_fleet import Fleet


def recipe_for(fleet: Fleet, model: ModelId, number: int) -> BackendRecipe | None:
    """The mesh's recipe of a revision's engine, and for vendors for which it was refused what the revision served in
    last; None: nodes can't install it. Raises KeyError if the log lacks the revision."""
    view = fleet.models[model]
    revision = view.of(number)
    recipe = fleet.recipes.get(revision.spec.engine)
    refused = view.refused_for(revision)
    if recipe is None or not any(variant.digest in refused for variant in recipe.variants):
        return recipe
    served = [fleet.used_recipes[digest] for digest in view.recipes_of(revision) if digest in fleet.used_recipes]
    variants: list[BackendVariant] = []
    for variant in recipe.variants:
        if variant.digest not in refused:
            variants.append(variant)
            continue
        earlier = [each for each in served if each.vendor == variant.vendor and each.digest not in refused]
        variants += [each for each in earlier[-1:] if each not in variants]
    return recipe.model_copy(update={"variants": tuple(variants)})


def recipes_for(fleet: Fleet, model: ModelId, number: int) -> Recipes:
    """The same as a catalogue, with this one recipe at most."""
    recipe = recipe_for(fleet, model, number)
    return {} if recipe is None else {recipe.engine: recipe}
