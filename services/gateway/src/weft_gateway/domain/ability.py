"""What a model can be asked for: it writes, or it makes embeddings. Never both: an engine is loaded for one."""

from typing import Literal

from weft_contracts.engines import EngineProfile
from weft_contracts.facts.values import ModelSpec
from weft_fleet import ModelView

from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.refused import Refused

Ability = Literal["text", "embeddings"]


def ability_of(spec: ModelSpec) -> Ability:
    """What the spec says, or else what the file's header says."""
    from_spec = spec.engine_args.get("embeddings")
    embeds = from_spec if isinstance(from_spec, bool) else spec.weights.embeds
    return "embeddings" if embeds else "text"


def check_writes(name: str, spec: ModelSpec) -> None:
    """Refuse to write with a model that can't. Raises Refused."""
    if ability_of(spec) != "text":
        what = f"Model {name!r} makes embeddings and writes no text; ask it at /v1/embeddings."
        raise Refused(400, what, param="model", code="model_makes_embeddings")


def check_generates(request: InferenceRequest, model: ModelView) -> None:
    """Refuse a request for text that a model can't serve: it writes none, or not so much. Raises Refused."""
    spec = model.serving.spec
    check_writes(model.name, spec)
    if request.max_tokens > spec.context_tokens:
        raise Refused(
            400,
            f"`{request.budget_field}` is {request.max_tokens}; model {model.name!r} takes at most "
            f"{spec.context_tokens} tokens, prompt and answer together.",
            param=request.budget_field,
            code="out_of_range",
        )


def check_embeds(name: str, spec: ModelSpec) -> None:
    """Refuse to embed with a model that can't. Raises Refused."""
    if ability_of(spec) != "embeddings":
        what = f"Model {name!r} writes text and makes no embeddings; ask it at /v1/chat/completions."
        raise Refused(400, what, param="model", code="model_makes_no_embeddings")


def check_reranks(name: str, spec: ModelSpec, profile: EngineProfile | None) -> None:
    """Refuse to rerank with a model that can't: its engine doesn't, or it writes. A model that makes embeddings may
    be a reranker; its engine knows, and says so. Raises Refused."""
    serves = profile.serves if profile is not None else ()
    if "rerank" not in serves or ("chat" in serves and ability_of(spec) == "text"):
        raise Refused(400, f"Model {name!r} does not rerank.", param="model", code="model_does_not_rerank")
