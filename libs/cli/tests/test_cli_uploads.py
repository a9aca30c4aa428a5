"""`weft deploy` of a file that is here: whether it is sent, what is told meanwhile, and how an end is said."""

import json
from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from weft_cli.commands.models import DeployOptions, deploy
from weft_cli.commands.upload_bar import UploadBar, in_words
from weft_cli.commands.uploads import sent_path
from weft_client.failure import Exit, Failure
from weft_client.gateway import Gateway
from weft_client.sending import Sending, Sent
from weft_testing.fake_gateway import FakeGateway

HERE, ELSEWHERE = Gateway("http://127.0.0.1:8080"), Gateway("http://10.9.8.7:8080")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.gguf"
    path.write_bytes(weft_tiny.gguf_path().read_bytes())
    return path


def test_a_file_that_is_here_is_sent_to_a_mesh_elsewhere(file: Path) -> None:
    assert file == sent_path(ELSEWHERE, str(file), upload=False)
    assert file == sent_path(HERE, str(file), upload=True)
    assert file == sent_path(ELSEWHERE, f"path:{file}", upload=True)


@pytest.mark.parametrize("source", ["tiny", "owner/name", "hf:owner/name", "https://h/m.gguf", "/nowhere/m.gguf"])
def test_what_is_not_here_lies_where_workers_find_it(source: str) -> None:
    assert sent_path(ELSEWHERE, source, upload=False) is None


def test_a_path_on_the_workers_is_one_if_it_is_said_so_or_they_are_on_this_machine(file: Path) -> None:
    assert sent_path(ELSEWHERE, f"path:{file}", upload=False) is None
    assert sent_path(HERE, str(file), upload=False) is None
    assert sent_path(Gateway("http://localhost:1"), str(file), upload=False) is None
    assert sent_path(Gateway("http://[::1]:1"), str(file), upload=False) is None
    assert sent_path(ELSEWHERE, str(file.parent), upload=False) is None


def test_only_what_is_here_can_be_uploaded() -> None:
    with pytest.raises(Failure, match="no such file on this machine") as failed:
        sent_path(HERE, "/nowhere/m.gguf", upload=True)
    assert Exit.USAGE == failed.value.exit


def test_a_bar_tells_bytes_rate_and_what_is_left() -> None:
    said = in_words(Sent(3 << 30, 12 << 30), float(1 << 30))
    assert "[######..................] 25 %  3.0 GiB of 12.0 GiB, 1.0 GiB/s, 9 s left" == said
    assert "[........................] 0 %  0 B of 1.0 KiB" == in_words(Sent(0, 1024), 0.0)
    assert in_words(Sent(0, 10 << 30), 1e6).endswith("2 h 58 min left")


def test_off_a_terminal_a_line_is_said_now_and_then_and_each_wait_once(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    bar = UploadBar(quiet=False, clock=lambda: now)
    for second in range(25):
        now = float(second)
        bar.told(Sent(second * 100, 2500, "the node installs the engine" if second == 3 else ""))
    bar.clear()
    lines = capsys.readouterr().out.splitlines()
    assert 3 == len(lines), lines
    assert "  the node installs the engine" == lines[0]
    assert "100 B/s" in lines[-1]


def test_a_folder_of_safetensors_that_is_here_is_sent_to_a_mesh_elsewhere(tmp_path: Path) -> None:
    folder = weft_tiny.folder()
    assert folder == sent_path(ELSEWHERE, str(folder), upload=False)
    assert sent_path(HERE, str(folder), upload=False) is None
    assert sent_path(ELSEWHERE, f"path:{folder}", upload=False) is None


def answer_all(fake: FakeGateway, **upload: tuple[int, Any]) -> None:
    told = {"request": "q-1", "model": "m-1", "revision": "1", "files": "1", "bytes": "9", "upload": "d1"}
    fake.answers["POST", "/api/models"] = (201, told)
    for path, answer in upload.items():
        fake.answers["PUT", f"/api/uploads/d1/{path}.gguf"] = answer


def test_a_deploy_sends_after_it_was_accepted_and_nothing_where_the_mesh_has_it(
    fake: FakeGateway, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_all(fake, m=(200, {"bytes": 9, "size": 9}))
    deploy(None, fake.url, str(file), DeployOptions(), wait_s=0, upload=True)
    said = capsys.readouterr().out
    assert "m is accepted as revision 1" in said
    assert "the mesh has it already: nothing is sent" in said
    assert ["POST", "PUT"] == [method for method, _, _ in fake.asked]
    body = fake.asked[0][2]["spec"]
    assert ({"kind": "upload", "name": "m.gguf"}, "llama.cpp") == (body["source"], body["engine"])
    assert file.stat().st_size == body["files"][0]["size"]


def test_the_files_of_a_folder_go_one_after_the_other(
    fake: FakeGateway, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / name).write_bytes((weft_tiny.folder() / name).read_bytes())
        fake.answers["PUT", f"/api/uploads/d1/{name}"] = (200, {"bytes": 9, "size": 9})
    (folder / "modeling_mine.py").write_text("print('x')")
    answer_all(fake)
    deploy(None, fake.url, str(folder), DeployOptions(), wait_s=0, upload=True)
    sent = ["model.safetensors", "config.json", "tokenizer.json"]
    assert [f"/api/uploads/d1/{name}" for name in sent] == [path for method, path, _ in fake.asked if method == "PUT"]
    spec = fake.asked[0][2]["spec"]
    assert ("model.safetensors", "vllm") == (spec["source"]["name"], spec["engine"])
    assert "1 of what lies there is not sent, as no engine takes it: modeling_mine.py" in capsys.readouterr().out


def test_what_a_mesh_does_not_take_is_said(fake: FakeGateway, file: Path) -> None:
    answer_all(fake, m=(409, {"detail": "Model 'm' has no place: no node has room."}))
    with pytest.raises(Failure, match="no node has room"):
        deploy(None, fake.url, str(file), DeployOptions(), wait_s=0, upload=True)
    fake.answers["POST", "/api/models"] = (201, {"request": "q-1", "model": "m-1", "revision": "1"})
    with pytest.raises(Failure, match="takes no files"):
        deploy(None, fake.url, str(file), DeployOptions(), wait_s=0, upload=True)


def test_an_interrupted_upload_says_how_it_goes_on(
    fake: FakeGateway, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Sending) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Sending, "run", interrupted)
    answer_all(fake)
    with pytest.raises(Failure, match=r"0 B of .* are sent; the same command goes on") as failed:
        deploy(None, fake.url, str(file), DeployOptions(), wait_s=0, upload=True)
    assert Exit.INTERRUPTED == failed.value.exit


def test_json_says_how_much_went(fake: FakeGateway, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer_all(fake, m=(200, {"bytes": 9, "size": 9}))
    status: dict[str, Any] = {
        "nodes": [],
        "models": [],
        "replicas": [],
        "mesh": {"problems": []},
        "log": {"position": 1},
    }
    fake.answers["GET", "/api/status"] = (200, status)
    deploy(None, fake.url, str(file), DeployOptions(), wait_s=0, upload=True, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (0, "d1", 1) == (told["sent"], told["upload"], told["revision"])
