"""What an admin tells the mesh of how engines are installed: set, replaced and withdrawn."""

import pytest
from weft_contracts.backends import BackendRecipe, BackendVariant, builtin_recipes
from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.mesh import BackendSet, BackendWithdrawn, EngineProfileSet
from weft_contracts.facts.request import BackendRequested, BackendWithdrawalRequested, Fulfilled, Rejected
from weft_contracts.subjects import MESH
from weft_registry.domain.backend_recipes import MOST_RECIPES

from .registry_story import Story

ECHO = BUILTIN["simulated"].model_copy(update={"name": "echo"})
VARIANT = BackendVariant(vendor="cpu", package="echo", version="1", requirements=("echo==1",), disk=1)
RECIPE = BackendRecipe(engine="echo", variants=(VARIANT,))


@pytest.fixture
def story() -> Story:
    return Story()


def told(story: Story, recipe: BackendRecipe = RECIPE, profile: EngineProfile | None = ECHO) -> Fulfilled | Rejected:
    outcome = story.answered(story.ask(BackendRequested(recipe=recipe, profile=profile)))
    assert isinstance(outcome, Fulfilled | Rejected)
    return outcome


def withdrawn(story: Story, engine: str = "echo") -> Fulfilled | Rejected:
    outcome = story.answered(story.ask(BackendWithdrawalRequested(engine=engine)))
    assert isinstance(outcome, Fulfilled | Rejected)
    return outcome


def test_a_recipe_with_its_profile_is_one_commit_and_what_is_so_already_makes_none(story: Story) -> None:
    assert isinstance(told(story), Fulfilled)
    assert [EngineProfileSet(profile=ECHO), BackendSet(recipe=RECIPE)] == story.log.facts(MESH)[-2:]
    assert RECIPE == story.state.fleet.recipes["echo"]
    before = story.log.facts(MESH)
    assert isinstance(told(story), Fulfilled)
    assert before == story.log.facts(MESH)


def test_a_built_in_engines_recipe_can_be_replaced_and_comes_back(story: Story) -> None:
    # given
    other = RECIPE.model_copy(update={"engine": "llama.cpp"})
    assert isinstance(told(story, other, None), Fulfilled)
    assert other == story.state.fleet.recipes["llama.cpp"]
    # when
    assert isinstance(withdrawn(story, "llama.cpp"), Fulfilled)
    # then
    assert BackendWithdrawn(engine="llama.cpp") == story.log.facts(MESH)[-1]
    assert builtin_recipes() == story.state.fleet.recipes


@pytest.mark.parametrize(
    ("recipe", "profile", "status", "words"),
    [
        (RECIPE, None, 422, "the mesh knows no engine echo"),
        (RECIPE.model_copy(update={"engine": "vllm"}), ECHO, 409, "send its recipe alone"),
        (RECIPE, ECHO.model_copy(update={"vendors": ()}), 422, "vendors is empty"),
        (RECIPE, ECHO.model_copy(update={"vendors": ("nvidia",)}), 422, "variants.0.vendor is cpu"),
    ],
)
def test_what_can_not_be_used_is_refused(
    story: Story, recipe: BackendRecipe, profile: EngineProfile | None, status: int, words: str
) -> None:
    outcome = told(story, recipe, profile)
    assert isinstance(outcome, Rejected)
    assert status == outcome.status
    assert words in outcome.reason


def test_there_are_at_most_so_many_and_only_what_was_told_can_be_withdrawn(story: Story) -> None:
    for n in range(MOST_RECIPES):
        name = f"e{n}"
        profile = ECHO.model_copy(update={"name": name})
        assert isinstance(told(story, RECIPE.model_copy(update={"engine": name}), profile), Fulfilled)
    assert 409 == getattr(told(story), "status", 0)
    assert 404 == getattr(withdrawn(story), "status", 0)
    assert "the recipe that Weft comes with" in str(getattr(withdrawn(story, "vllm"), "reason", ""))
    assert isinstance(withdrawn(story, "e0"), Fulfilled)
