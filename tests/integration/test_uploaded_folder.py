"""A folder of safetensors of somebody's own machine: its files are sent, the engine that takes them serves them."""

import json
import shutil
from pathlib import Path

import pytest
import weft_tiny
from weft_testing.engine_environment import engine_environment, profile_in
from weft_testing.story import MeshUnderTest

ECHO = Path(__file__).parents[1] / "packages" / "echo" / "weft_echo"
FILES = ("chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


@pytest.mark.slow
@pytest.mark.sabotage("upload-of-one-file")
def test_a_folder_is_sent_file_by_file_and_served_by_an_engine_that_takes_it(tmp_path: Path) -> None:
    # given a mesh with an engine that loads folders of safetensors, and such a folder on somebody's machine
    package = shutil.copytree(ECHO, tmp_path / "package" / "weft_echo")
    profile = package / "profile.py"
    profile.write_text(profile.read_text().replace('formats=("gguf",)', 'formats=("safetensors",)'))
    environment = engine_environment(tmp_path, package, "echo")
    told = tmp_path / "echo.json"
    told.write_text(json.dumps(profile_in(environment, "echo")))
    folder = tmp_path / "their-machine" / "my-own"
    folder.mkdir(parents=True)
    for name in FILES:
        shutil.copy(weft_tiny.folder() / name, folder / name)
    (folder / "modeling_mine.py").write_text("raise SystemExit('code of a stranger')")
    with MeshUnderTest(tmp_path, WEFT_BACKENDS=str(environment)) as mesh:
        assert 0 == mesh.weft("engines", "add", str(told)).returncode
        # when it is deployed
        words = ("deploy", str(folder), "--upload", "--url", mesh.url, "--engine", "echo", "--name", "mine")
        done = mesh.weft(*words, timeout=60)
        # then it answers, its data was sent, and its code was not
        assert 0 == done.returncode, f"{done.stdout}\n{done.stderr}\n{mesh.logs()}"
        assert "not sent, as no engine takes it: modeling_mine.py" in done.stdout
        assert "warp and weft" == mesh.ask("warp and weft", "mine")
        model = mesh.http.get(f"{mesh.url}/api/models/mine").json()
        assert sorted(FILES) == sorted(file["name"] for file in model["files"])
        assert "safetensors" == model["spec"]["weights"]["format"]
