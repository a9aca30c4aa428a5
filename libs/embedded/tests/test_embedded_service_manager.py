"""Under a service manager a launcher says when it serves, and prints nothing secret: its lines are read by others."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from weft_client.gateway import Gateway
from weft_embedded import first_admin_key
from weft_embedded.launcher_output import LauncherOutput
from weft_embedded.service_manager import VARIABLE, ServiceManager
from weft_embedded.state import State
from weft_testing.fake_gateway import FakeGateway


@pytest.fixture(params=["path", "abstract"])
def manager(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[ServiceManager, socket.socket]]:
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.settimeout(5)
    name = str(tmp_path / "notify") if request.param == "path" else f"@weft-{os.getpid()}"
    heard.bind(f"\0{name[1:]}" if name.startswith("@") else name)
    environ = {VARIABLE: name}
    made = ServiceManager(environ)
    assert {} == environ, "what it starts doesn't speak for it"
    yield made, heard
    heard.close()


def test_it_is_told_what_becomes_of_the_start_and_of_the_end(manager: tuple[ServiceManager, socket.socket]) -> None:
    told, heard = manager
    output = LauncherOutput(manager=told)
    output.started()
    assert b"READY=1\nSTATUS=serves" == heard.recv(999)
    output.stopping()
    assert b"STOPPING=1\nSTATUS=stopping" == heard.recv(999)
    output.failed("nats was not ready\nits log")
    assert b"STATUS=nats was not ready" == heard.recv(999)


def test_no_key_is_made_that_would_stand_in_a_journal(
    manager: tuple[ServiceManager, socket.socket],
    fake: FakeGateway,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake.answers["POST", "/api/keys"] = (201, {"key": "k-1", "secret": "weft-first"})
    state = State(tmp_path / "state")
    state.prepare()
    output = LauncherOutput(manager=manager[0])
    first_admin_key.show(Gateway(fake.url), state.first_key, output)
    output.secret("weft-first")
    assert [] == fake.asked
    assert not state.first_key.exists()
    said = capsys.readouterr().out
    assert "keys create" in said
    assert "weft-first" not in said


def test_a_manager_that_is_gone_keeps_nothing_from_going_on(tmp_path: Path) -> None:
    LauncherOutput(manager=ServiceManager({VARIABLE: str(tmp_path / "nobody")})).started()
    LauncherOutput(manager=ServiceManager({})).started()
