"""Digests that name a content: the same wherever they are computed."""

import hashlib
import json

from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.values import ModelSpec
from weft_contracts.source_keys import place_key

_RUN_FIELDS = frozenset(
    ("source", "engine", "context_tokens", "concurrency", "engine_args", "weights", "draft", "adapters", "files")
)


def revision_digest(spec: ModelSpec) -> str:
    """What two replicas must share to answer for one another: 16 hex digits over all that shapes an answer.

    How many replicas there are and where they go is not part of it.
    """
    body = spec.model_dump(mode="json", include=set(_RUN_FIELDS))
    body["source"].pop("secret", None)
    for adapter in body.get("adapters", ()):
        del adapter["name"]  # for people and logs
    for newer in ("embeds", "fingerprint"):  # than digests that are in the log
        if not body["weights"][newer]:
            del body["weights"][newer]
    for weights in (body["weights"], body.get("draft", {})):
        for told in ("layer_runs", "output_bytes", "input_bytes", "shape"):  # of the same files, by newer workers alone
            weights.pop(told, None)
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


LORA = "lora:"


def lora_key(adapter: LoraAdapter) -> str:
    """A LoRA adapter's source as inspections name it."""
    return f"{LORA}{adapter.path}"


def files_digest(spec: ModelSpec) -> str:
    """What names the files that workers fetch for a spec: 16 hex digits over its source and their list, whatever
    secret lets its readers in."""
    body = [place_key(spec.source), [file.model_dump(mode="json") for file in spec.files]]
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
