"""A file is sent in parts, from where the mesh has it to, through cuts and waits, and never one that has changed."""

import http.server
import json
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from blake3 import blake3
from weft_client.failure import Failure
from weft_client.gateway import Gateway, Refused
from weft_client.local_files import LocalModel
from weft_client.local_model import local_model, sent_name
from weft_client.sending import TRIES, Sending, Sent
from weft_contracts.content_range import content_range, range_there
from weft_contracts.uploads import CHECKSUM_HEADER

CHUNK = 500_000


class Mesh:
    """Takes what comes in order, as a gateway and its node do. `faults` are met one by one, each before a request: a
    status to answer, how many bytes are read before the connection is cut, or 0 for none."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self.whole = False
        self.asked: list[tuple[str, str]] = []
        self.faults: list[int | str] = []
        mesh = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                range = content_range(self.headers["content-range"])
                length = int(self.headers["content-length"])
                mesh.asked.append((self.headers["content-range"], self.headers[CHECKSUM_HEADER]))
                assert self.headers["authorization"] == "Bearer k"
                fault = mesh.faults.pop(0) if mesh.faults else None
                if isinstance(fault, str):
                    mesh.kept += self.rfile.read(min(int(fault), length))
                    self.connection.close()
                    return None
                body = self.rfile.read(length)
                if fault:
                    return self._say(fault, {"detail": f"it says {fault}"})
                if not range.asks and range.start != len(mesh.kept):
                    return self._say(416, {"detail": "elsewhere"})
                mesh.kept += body
                mesh.whole = mesh.whole or len(mesh.kept) == range.total
                there = range.total if mesh.whole else len(mesh.kept)
                return self._say(200 if mesh.whole else 308, {"bytes": there, "size": range.total})

            def _say(self, status: int, body: object) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                for name, value in (range_there(len(mesh.kept)) if status in (308, 416) else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.gateway = Gateway(f"http://127.0.0.1:{self.server.server_address[1]}", key="k")


@pytest.fixture
def mesh() -> Generator[Mesh]:
    made = Mesh()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my tiny (1).gguf"
    path.write_bytes(weft_tiny.gguf_path().read_bytes())
    return path


@pytest.fixture
def model(file: Path) -> LocalModel:
    return local_model(file)


def sending(mesh: Mesh, model: LocalModel, told: Callable[[Sent], None] = lambda _: None, **more: Any) -> Sending:
    return Sending(mesh.gateway, "digest", model, told, chunk=CHUNK, sleep=lambda _: None, **more)


def test_a_model_is_told_before_it_is_sent(file: Path, model: LocalModel) -> None:
    body = file.read_bytes()
    said = model.spec
    assert {"kind": "upload", "name": "my-tiny-1-.gguf"} == said["source"]
    checksum = f"blake3:{blake3(body).hexdigest()}"
    assert [{"name": "my-tiny-1-.gguf", "size": len(body), "checksum": checksum}] == said["files"]
    assert ("gguf", "llama") == (said["weights"]["format"], said["weights"]["architecture"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen3-0.6B-Q8_0.gguf", "Qwen3-0.6B-Q8_0.gguf"),
        (".hidden.gguf", "hidden.gguf"),
        ("größe.gguf", "gr-e.gguf"),
        ("模型", "model.gguf"),
        ("a" * 300 + ".gguf", "a" * 250 + ".gguf"),
    ],
)
def test_a_file_is_called_as_a_mesh_takes_it(name: str, expected: str) -> None:
    assert expected == sent_name(name)


def test_what_is_no_gguf_model_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"no model")
    for path in (tmp_path / "m.gguf", tmp_path / "gone.gguf", tmp_path):
        with pytest.raises(Failure, match=str(tmp_path)):
            local_model(path)


def test_a_file_is_sent_in_parts_with_its_hash(mesh: Mesh, model: LocalModel, file: Path) -> None:
    told: list[Sent] = []
    mine = sending(mesh, model, told.append)
    mine.run()
    assert file.read_bytes() == bytes(mesh.kept)
    size = model.size
    assert [f"bytes */{size}", f"bytes 0-{CHUNK - 1}/{size}"] == [range for range, _ in mesh.asked[:2]]
    assert 2 + size // CHUNK == len(mesh.asked)
    assert {model.files[0].said.checksum} == {checksum for _, checksum in mesh.asked}
    assert (size, size) == (mine.sent, told[-1].there)
    assert sorted(told, key=lambda each: each.there) == told


def test_nothing_is_sent_of_what_the_mesh_has(mesh: Mesh, model: LocalModel) -> None:
    mesh.whole = True
    mine = sending(mesh, model)
    mine.run()
    assert (0, 1) == (mine.sent, len(mesh.asked))


def test_after_a_cut_it_goes_on_with_what_is_there(mesh: Mesh, model: LocalModel, file: Path) -> None:
    mesh.kept += file.read_bytes()[:1000]
    mesh.faults = [503, 0, "70000", "0", 408]
    mine = sending(mesh, model)
    mine.run()
    assert file.read_bytes() == bytes(mesh.kept)


def test_a_mesh_that_waits_for_it_no_more_ends_it_with_the_reason(mesh: Mesh, model: LocalModel) -> None:
    for status in (401, 404, 409, 507):
        mesh.faults = [status]
        with pytest.raises(Refused, match=f"it says {status}"):
            sending(mesh, model).run()


def test_what_is_not_what_was_said_is_sent_once_more(mesh: Mesh, model: LocalModel) -> None:
    mesh.faults = [400]
    sending(mesh, model).run()
    assert mesh.whole
    mesh.faults = [400, 503, 400]
    with pytest.raises(Refused, match="it says 400"):
        sending(mesh, model).run()


def test_waiting_has_an_end_and_says_how_to_go_on(mesh: Mesh, model: LocalModel) -> None:
    mesh.faults = [503] * 50
    told: list[Sent] = []
    with pytest.raises(Failure, match=r"it says 503; .* the same command goes on"):
        sending(mesh, model, told.append, patience_s=0.0).run()
    mesh.server.shutdown()
    mesh.server.server_close()
    pauses: list[float] = []
    gone = Sending(mesh.gateway, "digest", model, told.append, told_after_s=0.0, sleep=pauses.append)
    with pytest.raises(Failure, match=f"nothing answers.*0 of {model.size} bytes are there"):
        gone.run()
    assert TRIES - 1 == len(pauses)
    assert any("nothing answers" in each.waits for each in told)


def test_a_mesh_that_takes_nothing_is_not_sent_to_for_ever(mesh: Mesh, model: LocalModel) -> None:
    mesh.faults = []
    send = mesh.gateway.send

    def nothing(*args: Any, **more: Any) -> tuple[int, Any]:
        send(*args, **more)
        mesh.kept.clear()
        return 308, {"bytes": 0}

    mesh.gateway.send = nothing  # type: ignore[method-assign]
    with pytest.raises(Failure, match="takes nothing"):
        sending(mesh, model, patience_s=0.0).run()


def test_a_file_that_changes_meanwhile_is_sent_no_further(mesh: Mesh, model: LocalModel, file: Path) -> None:
    def change(sent: Sent) -> None:
        if CHUNK <= sent.there < 2 * CHUNK:
            file.write_bytes(file.read_bytes()[:-1] + b"x")

    with pytest.raises(Failure, match="has changed since it was hashed"):
        sending(mesh, model, change).run()
    assert not mesh.whole
