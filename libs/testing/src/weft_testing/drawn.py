"""How hypothesis draws facts: it can't read the patterns by which pydantic checks a text."""

from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel
from weft_contracts.backends import BackendRecipe, BackendVariant, builtin_recipes
from weft_contracts.catalogue import CATALOGUE
from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.source import HfSource, HttpsSource, S3Source, SourceFile, UploadSource
from weft_contracts.facts.values import ENGINE_NAME, Backend, InstalledBackend, ModelSpec
from weft_contracts.policies import PlacementPolicy, PolicyWeights
from weft_contracts.secrets import SECRET_NAME

ENGINES: st.SearchStrategy[str] = st.sampled_from(sorted(BUILTIN)) | st.from_regex(ENGINE_NAME, fullmatch=True)


def _make_validators(kind: type[BaseModel]) -> None:
    """Of all that are made of it: hypothesis reads their signatures, which they lack until their first use."""
    for each in kind.__subclasses__():
        if each.__module__.startswith("weft_contracts."):
            each.model_rebuild()
            _make_validators(each)


for _entry in CATALOGUE:
    _entry.fact.model_rebuild()
_make_validators(BaseModel)

_OF_SECRETS: dict[str, st.SearchStrategy[str]] = {
    "name": st.from_regex(SECRET_NAME, fullmatch=True),
    "sealed": st.from_regex("[0-9a-f]{32}", fullmatch=True),
}


def profiles(names: st.SearchStrategy[str]) -> st.SearchStrategy[EngineProfile]:
    """Profiles as the built-in engines have them, by these names."""
    return st.builds(_named, st.sampled_from([*BUILTIN.values()]), names)


def _named(profile: EngineProfile, name: str) -> EngineProfile:
    return profile.model_copy(update={"name": name})


st.register_type_strategy(EngineProfile, profiles(ENGINES))
st.register_type_strategy(Backend, st.builds(Backend, engine=ENGINES))
st.register_type_strategy(InstalledBackend, st.builds(InstalledBackend, engine=ENGINES))
VARIANTS: st.SearchStrategy[BackendVariant] = st.sampled_from(
    [variant for recipe in builtin_recipes().values() for variant in recipe.variants]
)
st.register_type_strategy(BackendVariant, VARIANTS)
st.register_type_strategy(
    BackendRecipe,
    st.builds(BackendRecipe, engine=ENGINES, variants=st.tuples(VARIANTS) | st.tuples(VARIANTS, VARIANTS)),
)
_SOURCE_SECRETS = st.just("") | st.from_regex(SECRET_NAME, fullmatch=True)
_REPOSITORIES = st.from_regex("[A-Za-z0-9]{1,8}/[A-Za-z0-9._-]{1,8}", fullmatch=True)
st.register_type_strategy(HfSource, st.builds(HfSource, repository=_REPOSITORIES, secret=_SOURCE_SECRETS))
st.register_type_strategy(HttpsSource, st.builds(HttpsSource, secret=_SOURCE_SECRETS))
st.register_type_strategy(
    S3Source,
    st.builds(
        S3Source,
        bucket=st.from_regex("[a-z0-9]{3,8}", fullmatch=True),
        region=st.from_regex("[a-z0-9-]{1,12}", fullmatch=True),
        secret=_SOURCE_SECRETS,
    ),
)
_CHECKSUMS = st.from_regex("(sha256|blake3):[0-9a-f]{64}|git:[0-9a-f]{40}|etag:[0-9]{1,9}", fullmatch=True)
st.register_type_strategy(
    UploadSource, st.builds(UploadSource, name=st.from_regex("[a-z0-9]{1,8}[.]gguf", fullmatch=True))
)
st.register_type_strategy(
    SourceFile,
    st.builds(
        SourceFile,
        name=st.from_regex("[a-z0-9]{1,8}(/[a-z0-9]{1,8}){0,2}", fullmatch=True),
        checksum=st.just("") | _CHECKSUMS,
    ),
)
st.register_type_strategy(ModelSpec, st.builds(ModelSpec, engine=ENGINES))
POLICIES = st.from_regex("[a-z][a-z0-9-]{0,8}", fullmatch=True)
_WEIGHTS = st.builds(PolicyWeights, idle=st.floats(0.1, 9), spread=st.floats(0, 9))
st.register_type_strategy(PlacementPolicy, st.builds(PlacementPolicy, name=POLICIES, weights=_WEIGHTS))


def drawn(fact: type[Fact], **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Facts of one type: some fields as given, the rest by their types."""
    patterned = {"engine": ENGINES} if "engine" in fact.model_fields else {}
    if str(fact.model_fields["type"].default).startswith("policy_") and "name" in fact.model_fields:
        patterned = {"name": POLICIES}
    if "secret" in str(fact.model_fields["type"].default):
        patterned = {name: drawn_by for name, drawn_by in _OF_SECRETS.items() if name in fact.model_fields}
    return st.builds(fact, **{**patterned, **given})
