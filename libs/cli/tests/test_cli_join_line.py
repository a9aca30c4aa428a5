"""The line for other machines: its token is made once, kept for the owner alone, and made anew once it is revoked."""

import json
from pathlib import Path

import pytest
from weft_cli.client import Gateway
from weft_cli.embedded import join_line
from weft_cli.embedded.state import State

from .fake_gateway import FakeGateway


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(tmp_path)
    made.prepare()
    made.settings.write_text(json.dumps({"reach": {"listen": "10.0.0.1"}}))
    return made


def page(*tokens: tuple[str, str]) -> tuple[int, object]:
    return 200, {"items": [{"id": id, "state": state} for id, state in tokens], "next": None}


def test_a_token_is_made_once_and_no_one_else_can_read_it(fake: FakeGateway, state: State) -> None:
    fake.answers["POST", "/api/tokens"] = (201, {"token": "t-1", "secret": "s1"})
    fake.answers["GET", "/api/tokens?limit=1000"] = page(("t-0", "revoked"), ("t-1", "live"))
    # when two `up`s look after it
    for _ in range(2):
        join_line.keep_token(state, Gateway(fake.url))
    # then
    assert [("POST", "/api/tokens", {"name": join_line.NAME})] == [one for one in fake.asked if one[0] == "POST"]
    assert "weft worker --join https://10.0.0.1:8080 --token s1" == join_line.line(state, "https://10.0.0.1:8080")
    assert 0o600 == state.machine_token.stat().st_mode & 0o777


def test_one_that_was_revoked_is_replaced(fake: FakeGateway, state: State) -> None:
    state.machine_token.write_text('{"token": "t-1", "secret": "s1"}')
    fake.answers["POST", "/api/tokens"] = (201, {"token": "t-2", "secret": "s2"})
    fake.answers["GET", "/api/tokens?limit=1000"] = page(("t-1", "revoked"))
    join_line.keep_token(state, Gateway(fake.url))
    assert (join_line.line(state, "https://10.0.0.1:8080") or "").endswith(" --token s2")


def test_a_mesh_for_this_machine_alone_has_no_line(state: State) -> None:
    state.machine_token.write_text('{"token": "t-1", "secret": "s1"}')
    state.settings.write_text("{}")
    assert join_line.line(state, "http://127.0.0.1:8080") is None
