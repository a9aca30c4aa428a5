"""Answers about models, the admin API's and OpenAI's."""

from typing import Literal

from typing_extensions import TypedDict
from weft_contracts.facts.values import EngineName

from weft_api.replicas import Replica
from weft_api.values import ModelSpec, SourceFile

ModelState = Literal["ready", "loading", "placing", "unplaceable", "unservable", "empty", "deleted"]
"""`placing`: it has no place yet, and it is not known that there is none."""


class Failing(TypedDict):
    """A revision that can't be served while one before it is kept, and why."""

    revision: int
    reason: str


class Size(TypedDict):
    """How many replicas there should be by what there was to do, from how many it changed, why, and when, in seconds
    since the epoch."""

    replicas: int
    was: int
    why: str
    at: float


class Model(TypedDict):
    """A model with its newest spec; `source`: where it is from, in one line. `ready` of its `wanted` replicas answer;
    `serves` is the revision that is kept until the newest was ready as a whole; `created_at` is seconds since the
    epoch. `size` is null where its number of replicas was never changed by demand."""

    id: str
    name: str
    state: ModelState
    reason: str | None
    ready: int
    wanted: int
    revision: int
    serves: int | None
    failing: Failing | None
    digest: str
    source: str
    spec: ModelSpec
    size: Size | None
    created_at: float


class ModelPage(TypedDict):
    """Models by id, and the cursor of the next page."""

    items: list[Model]
    next: str | None


class ModelDetail(Model):
    """A model with its replicas, and the files that workers fetch for it."""

    replicas: list[Replica]
    files: list[SourceFile]


class OpenAIModel(TypedDict):
    """A model as OpenAI lists it."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenAIModelList(TypedDict):
    """The models that the caller may use."""

    object: Literal["list"]
    data: list[OpenAIModel]


class Standing(TypedDict):
    """How a model stands, and what the revision that serves can do."""

    id: str
    state: ModelState
    reason: str | None
    ready: int
    wanted: int
    engine: EngineName
    ability: str
    context_tokens: int
    revision: int
    serves: int | None
    failing: Failing | None
    no_tokenizer: str | None
    """Why this gateway makes no token ids of the model's itself, and its engine does; null: it makes the engine's."""


class OpenAIModelDetail(OpenAIModel):
    """OpenAI's shape and, under `weft`, how the model stands."""

    weft: Standing
