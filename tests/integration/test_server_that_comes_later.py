"""A server elsewhere that is away when its replica starts, and a key that is wrong: each comes right by itself once its
cause is gone, and nobody need say so."""

from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from weft_testing.llamacpp_server import LlamaCppServer
from weft_testing.story import MeshUnderTest, until

KEY, WRONG = "the-right-one", "another-one"


def set_key(mesh: MeshUnderTest, value: str) -> None:
    said = mesh.weft("secrets", "set", "theirs", typed=f"{value}\n")
    assert 0 == said.returncode, said.stderr


def model(mesh: MeshUnderTest) -> dict[str, Any]:
    return mesh.http.get(f"{mesh.url}/api/models/theirs").json()


@pytest.mark.slow
@pytest.mark.sabotage("away-for-good")
def test_a_server_that_is_away_at_first_serves_once_it_is_there_and_its_key_is_right(tmp_path: Path) -> None:
    with (
        LlamaCppServer(str(weft_tiny.gguf_path()), alias="their-tiny", key=KEY) as server,
        MeshUnderTest(tmp_path, WEFT_SECRETS_EVERY="1") as mesh,
    ):
        # given a server that is away, and a key that is not its key
        server.kill()
        set_key(mesh, WRONG)
        arguments = {"base_url": server.url, "model": "their-tiny", "key": "secret:theirs"}
        spec = {"source": {"kind": "simulated"}, "engine": "openai", "engine_args": arguments}
        assert 201 == mesh.deploy("theirs", spec).status_code
        # then its replica is not given up, and says what it waits for
        (stopped, *_) = until("it was tried", lambda: mesh.facts("run", "stopped"), 60)
        waits = "it waits for its server: the server at 127.0.0.1:"
        assert stopped["fact"]["detail"].startswith(waits), stopped["fact"]
        assert stopped["fact"]["detail"].endswith("connection refused"), stopped["fact"]
        until("that is shown", lambda: waits in str(model(mesh)), 60)
        assert [] == mesh.facts("run", "failed") + mesh.facts("model", "unservable")

        # when the server comes: then it is asked, and says that the key is wrong; that is given up
        server.start()
        (failed,) = until("it is given up", lambda: mesh.facts("run", "failed"), 90)
        assert (True, True) == (failed["fact"]["permanent"], "(401)" in failed["fact"]["reason"]), failed["fact"]
        until("nothing is tried", lambda: mesh.facts("model", "unservable"))

        # when the key is set right: then a chat is answered, and nobody had to say that it is to be tried
        set_key(mesh, KEY)
        until("it serves", lambda: mesh.ready_replicas("theirs"), 60)
        assert "The capital of France is Paris." == mesh.ask(model="theirs")
