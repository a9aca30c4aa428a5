"""What can be wrong with a spec's draft model: by itself, or beside the model. Each fault is one sentence."""

from pathlib import PurePosixPath
from typing import Final

from weft_contracts.draft import draft_path
from weft_contracts.engines import Profiles
from weft_contracts.facts.source import UploadSource
from weft_contracts.facts.values import ModelSpec, Weights

from weft_reconciler.domain.spec_faults import LONGEST_PATH

MOST_TOKENS_APART: Final = 128
"""By which the vocabularies of a model and its draft may differ: llama.cpp takes no draft beyond that."""


def fault_of_draft(spec: ModelSpec, engines: Profiles) -> str | None:
    """What is wrong with a spec's draft model whatever the nodes have."""
    claim = engines[spec.engine].claim
    path = draft_path(spec, engines[spec.engine])
    if claim.formula != "header" or (claim.draft_argument or "") not in spec.engine_args:
        return None
    at = f"engine_args.{claim.draft_argument}"
    if len(path) > LONGEST_PATH or not path.isprintable() or not PurePosixPath(path).is_absolute():
        return f"{at} is {path[:60]!r}: give the draft model's path on the workers from the root on"
    if isinstance(spec.source, UploadSource):
        return f"{at}: a model that is sent takes no draft model: put its file on the workers, and give its path"
    return None


def fault_of_drafts_fit(spec: ModelSpec, model: Weights, draft: Weights | None) -> str | None:
    """What is wrong with a draft model beside the model that it guesses for."""
    if draft is None:
        return None
    if spec.engine_args.get("embeddings", model.embeds):
        return "the model makes embeddings, and a draft model is for one that writes: leave it out"
    if draft.embeds:
        return "the draft model makes embeddings, and one that writes is wanted"
    tokens, own = (each.shape.vocabulary if each.shape is not None else 0 for each in (model, draft))
    if tokens and own and abs(tokens - own) > MOST_TOKENS_APART:
        return (
            f"the draft model knows {own} tokens and the model {tokens}: it is made for another, "
            "want one with the same vocabulary"
        )
    return None
