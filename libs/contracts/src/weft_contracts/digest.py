"""Digests that name a content: the same wherever they are computed."""

import hashlib
import json

from weft_contracts.facts.values import BuiltinSource, LoraAdapter, ModelSpec, PathSource, SimulatedSource

_RUN_FIELDS = {"source", "engine", "context_tokens", "concurrency", "engine_args", "weights", "adapters"}


def revision_digest(spec: ModelSpec) -> str:
    """What two replicas must share to answer for one another: 16 hex digits over all that shapes an answer.

    How many replicas there are and where they go is not part of it.
    """
    body = spec.model_dump(mode="json", include=_RUN_FIELDS)
    for adapter in body.get("adapters", ()):
        del adapter["name"]  # for people and logs
    for newer in ("embeds", "fingerprint"):  # than digests that are in the log
        if not body["weights"][newer]:
            del body["weights"][newer]
    for told in ("layer_runs", "output_bytes", "input_bytes"):  # of the same files, by newer workers alone
        body["weights"].pop(told, None)
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


LORA = "lora:"


def lora_key(adapter: LoraAdapter) -> str:
    """A LoRA adapter's source as inspections name it."""
    return f"{LORA}{adapter.path}"


def source_key(spec: ModelSpec) -> str:
    """A model's source as inspections name it: `builtin:<name>`, `path:<path>` or `simulated:`."""
    match spec.source:
        case BuiltinSource(name=name):
            return f"builtin:{name}"
        case PathSource(path=path):
            return f"path:{path}"
        case SimulatedSource():
            return "simulated:"
