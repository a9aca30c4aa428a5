"""The draft model that an engine is to load beside its model, as it lies on this node."""

from weft_contracts.draft import draft_key
from weft_contracts.engines import Profiles
from weft_contracts.facts.values import ModelSpec

from weft_worker_agent.outbound.files.found import NotFound
from weft_worker_agent.outbound.files.model_files import look


def check_draft(spec: ModelSpec, engines: Profiles) -> None:
    """Reads its file: call it in a thread. Raises NotFound where it isn't what was accepted, and claimed."""
    profile = engines.get(spec.engine)
    key = draft_key(spec, profile) if profile is not None else ""
    if not key:
        return
    there = look(key, spec.engine, engines)
    if spec.draft is None or not there.weights.same_as(spec.draft):
        raise NotFound(f"the draft model {there.path} has changed since it was deployed: deploy it again")
