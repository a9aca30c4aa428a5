"""Servers that run elsewhere: named by settings, and remembered by the state."""

import json
from pathlib import Path

import pytest
from weft_client.failure import Exit, Failure
from weft_embedded.external_servers import ExternalServers, chosen
from weft_embedded.state import State

URLS = "tls://10.0.0.1:4222,tls://[fd00::2]:4222"
POSTGRES = "postgresql://weft:secret@db.example:5432/weft"


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(tmp_path / "state")
    made.prepare()
    return made


def test_an_up_runs_on_the_servers_of_the_last_one(state: State) -> None:
    # given
    state.trust.mkdir()
    assert ExternalServers() == chosen(state, {})
    named = chosen(state, {"WEFT_NATS_URL": URLS, "WEFT_POSTGRES_URL": POSTGRES})
    # then
    assert ExternalServers(URLS, POSTGRES) == named == chosen(state, {})
    assert 0o600 == state.settings.stat().st_mode & 0o777
    # and what else the state remembers stays
    state.settings.write_text(json.dumps({"workers": 3}))
    chosen(state, {"WEFT_POSTGRES_URL": POSTGRES})
    assert 3 == json.loads(state.settings.read_text())["workers"]


@pytest.mark.parametrize(
    "url", ["nats://10.0.0.1:4222", "tls://10.0.0.1", "tls://a:b@c:1", "10.0.0.1:4222", "tls://a:x"]
)
def test_an_address_that_cant_be_meant_is_wrong_usage(state: State, url: str) -> None:
    state.trust.mkdir()
    with pytest.raises(Failure, match="WEFT_NATS_URL: want tls://HOST:PORT, several separated by commas") as failure:
        chosen(state, {"WEFT_NATS_URL": f"{URLS},{url}"})
    assert Exit.USAGE == failure.value.exit
    with pytest.raises(Failure, match="WEFT_POSTGRES_URL: want postgresql://"):
        chosen(state, {"WEFT_POSTGRES_URL": "db.example"})


def test_servers_that_dont_know_the_mesh_are_not_begun_with(state: State) -> None:
    with pytest.raises(Failure, match="make their configuration first: weft nats-config"):
        chosen(state, {"WEFT_NATS_URL": URLS})


def test_a_log_of_its_own_is_not_left_behind(state: State) -> None:
    state.trust.mkdir()
    (state.nats / "jetstream").mkdir(parents=True)
    with pytest.raises(Failure, match="lies in its own NATS: use another state"):
        chosen(state, {"WEFT_NATS_URL": URLS})
