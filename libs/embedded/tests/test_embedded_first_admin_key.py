"""The first API key of a mesh: whether one is needed, and how people are told of theirs."""

from pathlib import Path

import pytest
from weft_client.gateway import Gateway
from weft_embedded import first_admin_key
from weft_embedded.launcher_output import LauncherOutput
from weft_embedded.state import State
from weft_testing.fake_gateway import FakeGateway


@pytest.fixture
def state(tmp_path: Path) -> State:
    state = State(tmp_path / "state")
    state.prepare()
    return state


def test_the_first_key_for_people_is_told_once_and_to_no_log(
    fake: FakeGateway, state: State, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fake.answers[("POST", "/api/keys")] = (201, {"key": "k-1", "secret": "weft-first"})
    gateway = Gateway(fake.url)
    # given a launcher in the background, whose own output is a log
    relayed = tmp_path / "relayed"
    with relayed.open("wb") as pipe:
        first_admin_key.show(gateway, state.first_key, LauncherOutput(report_fd=pipe.fileno()))
    assert "weft-first" in relayed.read_text()
    assert "weft-first" not in capsys.readouterr().out
    assert "k-1\n" == state.first_key.read_text()
    # and at the next start
    first_admin_key.show(gateway, state.first_key, LauncherOutput())
    assert "weft-first" not in capsys.readouterr().out
    assert [("POST", "/api/keys", {"name": "first", "scopes": ["admin"]})] == fake.asked


@pytest.mark.parametrize(("status", "needed"), [(401, True), (200, False), (503, False)])
def test_whether_keys_are_needed_is_the_gateways_to_say(fake: FakeGateway, status: int, needed: bool) -> None:
    fake.answers[("GET", "/v1/models")] = (status, {})
    assert needed is first_admin_key.keys_needed(fake.url)
    assert [None] == [headers.get("Authorization") for headers in fake.headers]
