"""A model's file of somebody's own machine: sent through cuts on both sides, served, and sent to the mesh once."""

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import weft_tiny
from weft_testing.story import MeshUnderTest, until

from .cut_wire import CutWire

PARIS = "The capital of France is Paris."
PIECE = 16 << 20
"""What a node keeps whole over its agent's death."""


@pytest.mark.slow
@pytest.mark.sabotage("upload-begins-anew")
def test_a_file_is_sent_through_the_deaths_of_its_sender_an_agent_and_a_gateway_and_then_never_again(
    tmp_path: Path,
) -> None:
    # given a mesh, and a large file on a machine that shares no disk with it
    file, folder = tmp_path / "their-machine" / "my-own.gguf", tmp_path / "mesh"
    for each in (file.parent, folder):
        each.mkdir()
    file.write_bytes(weft_tiny.gguf_path().read_bytes() + bytes(4 * PIECE))
    size = file.stat().st_size
    with MeshUnderTest(folder) as mesh, CutWire(urlsplit(mesh.url).port or 0) as wire:
        # when its sender is killed midway, and the agent of the node that it is sent to as well
        wire.most = 2 * PIECE + PIECE // 2
        first = sender(mesh, wire, file)
        until("two pieces are there", lambda: fetched(mesh) >= 2 * PIECE, 60)
        first.kill()
        first.communicate()
        wire.cut()
        agent = mesh.agents()[0]
        agent.kill()
        until("another agent", lambda: [each for each in mesh.agents() if each.pid != agent.pid], 60)
        # and somebody sends it again, until the gateway is killed
        before = wire.went
        wire.most = before + PIECE
        second = sender(mesh, wire, file)
        until("it goes on", lambda: wire.went > before + PIECE // 2, 60)
        mesh.kill("gateway")
        wire.most = None
        # then it arrives by itself, without what was there, and answers
        said, wrong = second.communicate(timeout=180)
        assert 0 == second.returncode, f"{said}\n{wrong}\n{mesh.logs()}"
        assert wire.went - before < size - PIECE, (before, wire.went)
        assert "answers from 1 replica" in said
        assert PARIS == mesh.ask(model="my-own")
        # and of where it lay the mesh knows nothing
        assert str(file.parent) not in str(mesh.events())
        # and the same file under another name costs a question
        before = wire.went
        again = mesh.weft("deploy", str(file), "--upload", "--url", wire.url, "--name", "other", timeout=120)
        assert 0 == again.returncode, again.stderr
        assert "nothing is sent" in again.stdout
        assert wire.went - before < 1 << 20
        assert PARIS == mesh.ask(model="other")


def sender(mesh: MeshUnderTest, wire: CutWire, file: Path) -> "subprocess.Popen[str]":
    """`weft deploy` of a file, as on another machine."""
    words = [sys.executable, "-m", "weft_cli", "deploy", str(file), "--upload", "--url", wire.url]
    kept = {name: value for name, value in mesh.environment().items() if name != "WEFT_STATE"}
    own = {"WEFT_STATE": str(file.parent / "state")}
    return subprocess.Popen(
        words, env=kept | own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )


def fetched(mesh: MeshUnderTest) -> int:
    """Bytes that the node says it has of what it waits for."""
    progress = mesh.status()["progress"].values()
    return max((each["fetch"]["fetched"] for each in progress if each["fetch"]), default=0)
