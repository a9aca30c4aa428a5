"""What `weft deploy` makes of a source, and how it tells its progress."""

from pathlib import Path

import pytest
from weft_cli import api
from weft_cli.commands.models import Wanted, spec
from weft_cli.commands.progress import phase
from weft_cli.commands.trial import _alike
from weft_cli.failure import Exit, Failure
from weft_contracts.ids import ReplicaId
from weft_placement.explain import Explanation


def row(state: str, node: str = "", reason: str = "") -> api.ReplicaRow:
    return api.ReplicaRow(
        id="m-1-1", model="m", revision=1, digest="d", state=state, node=node, engine="", reason=reason
    )


def test_a_replica_is_placed_then_loads_on_its_node_then_answers() -> None:
    assert "placing" == phase([], 0, 0)
    assert "placing" == phase([row("added")], 0, 1)
    assert "loading on a" == phase([row("placed", "a")], 0, 1)
    assert "loading on a, b" == phase([row("loading", "a"), row("loading", "b"), row("loading", "a")], 0, 3)
    assert "1 of 2 replicas answer" == phase([row("ready", "a"), row("loading", "b")], 1, 2)


def test_a_start_after_a_failed_one_says_what_failed() -> None:
    again = row("loading", "a", "it starts again after: no memory")
    assert "loading on a: it starts again after: no memory" == phase([again], 0, 1)


def test_a_file_is_for_llama_cpp_and_a_folder_for_vllm(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.touch()
    assert ("llama.cpp", "vllm") == (spec(str(file), Wanted())["engine"], spec(str(tmp_path), Wanted())["engine"])


def test_a_path_from_the_root_may_be_on_the_workers_alone() -> None:
    assert "/models/there.gguf" == spec("/models/there.gguf", Wanted())["source"]["path"]


def test_a_word_that_is_neither_a_built_in_model_nor_a_file_here_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Failure, match="tinny is neither a built-in model") as refused:
        spec("tinny", Wanted())
    assert Exit.USAGE == refused.value.exit


def test_a_dry_run_tells_replicas_that_come_out_the_same_together() -> None:
    def explained(number: int, outcome: str) -> Explanation:
        return Explanation(ReplicaId(f"m-new-{number}"), "m", 1, "", outcome, (), None)

    one, two = explained(1, "it would go to a"), explained(2, "it would go to a")
    three, four = explained(3, "no node can take it"), explained(4, "it would go to a")
    assert [[one, two], [three], [four]] == _alike([one, two, three, four])
    assert [] == _alike([])
