"""A recipe as an admin sends it. Unknown fields are refused: a typo must not pass as a default."""

from typing import Annotated

from pydantic import BaseModel, Field
from weft_contracts.backends import BackendRecipe, BackendVariant, SourceBuild, SystemNeed
from weft_contracts.facts.values import EngineName

from weft_gateway.inbound.admin.engine_bodies import EngineProfileBody


class SystemNeedBody(SystemNeed, frozen=True, extra="forbid"):
    """Something that must be there before anything is installed."""


class SourceBuildBody(SourceBuild, frozen=True, extra="forbid"):
    """How a package is built on the node: options of a closed list, on or off."""


class BackendVariantBody(BackendVariant, frozen=True, extra="forbid"):
    """What is installed for an engine on one vendor's devices, in bytes of disk."""

    needs: Annotated[tuple[SystemNeedBody, ...], Field(max_length=16)] = ()
    source: SourceBuildBody | None = None


_MINE = {
    "engine": "mine",
    "variants": [
        {
            "vendor": "cpu",
            "package": "weft-mine",
            "version": "1.0",
            "requirements": ["weft-mine==1.0"],
            "disk": 50_000_000,
        }
    ],
}


class BackendRecipeBody(BaseModel, frozen=True, extra="forbid"):
    """How an engine is installed; see contracts' BackendRecipe."""

    engine: EngineName
    variants: Annotated[tuple[BackendVariantBody, ...], Field(min_length=1, max_length=16)]


class BackendBody(BaseModel, frozen=True, extra="forbid", json_schema_extra={"examples": [{"recipe": _MINE}]}):
    """A recipe, and the profile of an engine that the mesh doesn't know yet."""

    recipe: BackendRecipeBody
    profile: EngineProfileBody | None = None

    def told(self) -> BackendRecipe:
        """The recipe as the log knows it."""
        return BackendRecipe.model_validate(self.recipe.model_dump())
