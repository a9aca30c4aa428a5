"""The draft model of an assignment, as it lies on the node."""

from pathlib import Path
from shutil import copyfile

import pytest
import weft_tiny
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import ModelSpec
from weft_testing.made_models import write_random_model
from weft_worker_agent.outbound.files.found import NotFound
from weft_worker_agent.outbound.files.model_files import look
from weft_worker_agent.outbound.processes.draft import check_draft


def test_a_launch_gets_the_draft_model_that_was_accepted_and_no_changed_one(tmp_path: Path) -> None:
    draft = copyfile(weft_tiny.gguf_path(), tmp_path / "d.gguf")
    spec = ModelSpec(
        source=PathSource(path="/m.gguf"), engine="llama.cpp", engine_args={"draft_model": str(draft)}, draft=None
    )
    accepted = look(f"path:{draft}", "llama.cpp").weights.without_layers

    check_draft(spec.model_copy(update={"draft": accepted}), BUILTIN)
    check_draft(spec.model_copy(update={"engine_args": {}}), BUILTIN)
    with pytest.raises(NotFound, match=r"d\.gguf has changed since it was deployed: deploy it again"):
        check_draft(spec, BUILTIN)

    write_random_model(draft)
    with pytest.raises(NotFound, match=r"d\.gguf has changed since it was deployed: deploy it again"):
        check_draft(spec.model_copy(update={"draft": accepted}), BUILTIN)
    draft.unlink()
    with pytest.raises(NotFound, match="does not exist on this node"):
        check_draft(spec.model_copy(update={"draft": accepted}), BUILTIN)
