"""A model in several files with a LoRA adapter: deployed by its first file, asked with the adapter and without."""

from pathlib import Path

import pytest
from weft_testing.gguf_files import split_model, write_lora
from weft_testing.story import MeshUnderTest
from weft_tiny import gguf_path


@pytest.mark.slow
@pytest.mark.sabotage("lora-left-out")
def test_a_model_in_parts_answers_with_its_adapter_and_as_before_where_that_has_no_weight(tmp_path: Path) -> None:
    parts = split_model(gguf_path(), tmp_path / "mine", 10)
    lora = write_lora(tmp_path / "odd.gguf", gguf_path())
    foreign = write_lora(tmp_path / "foreign.gguf", gguf_path(), architecture="qwen3")
    with MeshUnderTest(tmp_path) as mesh:
        plain = mesh.ask()

        # when the model is deployed with an adapter of no weight
        deployed = mesh.weft("deploy", str(parts[0]), "--name", "mine", "--lora", f"odd:0={lora}")
        # then it answers as the model does by itself
        assert 0 == deployed.returncode, deployed.stderr
        assert plain == mesh.ask(model="mine")

        # when it is deployed with the adapter's own weight
        deployed = mesh.weft("deploy", str(parts[0]), "--name", "mine", "--lora", f"odd={lora}")
        # then it says something else, and shows what it was made of
        assert 0 == deployed.returncode, deployed.stderr
        assert plain != mesh.ask(model="mine", max_tokens=16)
        (shown,) = mesh.http.get(f"{mesh.url}/api/models/mine").json()["spec"]["adapters"]
        assert ("odd", str(lora), 1.0) == (shown["name"], shown["path"], shown["scale"])
        assert shown["bytes"] > 0

        # when it is deployed with what can't be
        wrong = mesh.weft("deploy", str(parts[0]), "--name", "mine", "--lora", f"odd={foreign}")
        parts[2].unlink()
        cut = mesh.weft("deploy", str(parts[0]), "--name", "mine", "--lora", f"odd={lora}")
        # then a sentence says why, and what runs answers on
        assert "the LoRA adapter odd is made for the architecture qwen3, the model is llama" in wrong.stderr
        assert f"{parts[0].name} is one of 3 files, and {parts[2].name} is missing" in cut.stderr
        assert 200 == mesh.chat("Hello!", "mine", max_tokens=4).status_code
