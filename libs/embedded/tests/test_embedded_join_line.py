"""The line for other machines: its token is made once, kept for the owner alone, and made anew once it is revoked."""

import json
import time
from pathlib import Path

import pytest
from weft_client.failure import Failure
from weft_client.gateway import Gateway
from weft_embedded import founding, join_line
from weft_embedded.state import State
from weft_testing.fake_gateway import FakeGateway

DAY_S = 86_400


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(tmp_path)
    made.prepare()
    made.settings.write_text(json.dumps({"reach": {"listen": "10.0.0.1"}}))
    return made


def page(*tokens: tuple[str, str], left: float | None = DAY_S) -> tuple[int, object]:
    """`left`: seconds until they expire; None: they don't."""
    at = None if left is None else time.time() + left
    return 200, {"items": [{"id": id, "state": state, "expires_at": at} for id, state in tokens], "next": None}


def posted(fake: FakeGateway) -> list[object]:
    return [one for one in fake.asked if one[0] == "POST"]


def test_a_token_is_made_once_and_no_one_else_can_read_it(fake: FakeGateway, state: State) -> None:
    fake.answers["POST", "/api/tokens"] = (201, {"token": "t-1", "secret": "s1"})
    fake.answers["GET", "/api/tokens?limit=1000"] = page(("t-0", "revoked"), ("t-1", "live"))
    # when two `up`s look after it
    for _ in range(2):
        join_line.keep_token(state, Gateway(fake.url))
    # then
    assert [("POST", "/api/tokens", {"name": join_line.NAME, "expires_in_s": DAY_S})] == posted(fake)
    assert "weft worker --join https://10.0.0.1:8080 --token s1" == join_line.line(state, "https://10.0.0.1:8080")
    assert 0o600 == state.machine_token.stat().st_mode & 0o777


def test_one_that_was_revoked_is_replaced(fake: FakeGateway, state: State) -> None:
    state.machine_token.write_text('{"token": "t-1", "secret": "s1"}')
    fake.answers["POST", "/api/tokens"] = (201, {"token": "t-2", "secret": "s2"})
    fake.answers["GET", "/api/tokens?limit=1000"] = page(("t-1", "revoked"))
    join_line.keep_token(state, Gateway(fake.url))
    assert (join_line.line(state, "https://10.0.0.1:8080") or "").endswith(" --token s2")


@pytest.mark.parametrize(("left", "made"), [(DAY_S / 2, 0), (DAY_S / 5, 1)])
def test_one_that_is_about_to_expire_is_replaced_and_stays_good_for_who_has_it(
    fake: FakeGateway, state: State, left: float, made: int
) -> None:
    state.machine_token.write_text('{"token": "t-1", "secret": "s1"}')
    fake.answers["POST", "/api/tokens"] = (201, {"token": "t-2", "secret": "s2"})
    fake.answers["GET", "/api/tokens?limit=1000"] = page(("t-1", "live"), left=left)
    join_line.keep_token(state, Gateway(fake.url))
    assert made == len(posted(fake))
    assert [] == [one for one in fake.asked if one[0] == "DELETE"]


def test_one_for_ever_of_an_earlier_version_is_revoked_and_replaced(fake: FakeGateway, state: State) -> None:
    state.machine_token.write_text('{"token": "t-1", "secret": "s1"}')
    fake.answers["POST", "/api/tokens"] = (201, {"token": "t-2", "secret": "s2"})
    fake.answers["DELETE", "/api/tokens/t-1"] = (200, {})
    fake.answers["GET", "/api/tokens?limit=1000"] = page(("t-1", "live"), left=None)
    join_line.keep_token(state, Gateway(fake.url))
    assert ["DELETE"] == [one[0] for one in fake.asked if one[1] == "/api/tokens/t-1"]
    assert (join_line.line(state, "https://10.0.0.1:8080") or "").endswith(" --token s2")


def test_how_long_the_lines_token_lasts_is_a_setting(
    fake: FakeGateway, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_JOIN_LINE_EXPIRES", "90m")
    fake.answers["POST", "/api/tokens"] = (201, {"token": "t-1", "secret": "s1"})
    fake.answers["GET", "/api/tokens?limit=1000"] = page()
    join_line.keep_token(state, Gateway(fake.url))
    assert [("POST", "/api/tokens", {"name": join_line.NAME, "expires_in_s": 5400})] == posted(fake)
    monkeypatch.setenv("WEFT_JOIN_LINE_EXPIRES", "soon")
    with pytest.raises(Failure, match="WEFT_JOIN_LINE_EXPIRES soon: want a span"):
        join_line.keep_token(state, Gateway(fake.url))


def test_the_launchers_workers_have_their_keys_before_they_start(state: State) -> None:
    first = founding.worker_keys(state, 2)
    assert first == founding.worker_keys(state, 2)
    assert first == founding.worker_keys(state, 3)[:2]
    key = state.worker(1) / "node.seed"
    assert 0o600 == key.stat().st_mode & 0o777
    key.write_text("SU-damaged")
    assert first[1:] == founding.worker_keys(state, 2)


def test_a_mesh_for_this_machine_alone_has_no_line(state: State) -> None:
    state.machine_token.write_text('{"token": "t-1", "secret": "s1"}')
    state.settings.write_text("{}")
    assert join_line.line(state, "http://127.0.0.1:8080") is None


def test_the_line_for_a_machine_without_weft_runs_nothing_before_it_has_checked_it(state: State) -> None:
    state.machine_token.write_text('{"token": "t-1", "secret": "s1.d"}')
    assert join_line.install_line(state, "https://10.0.0.1:8080") is None
    digest = "a" * 64
    state.install_record.write_text(json.dumps({"script": digest}))
    line = join_line.install_line(state, "https://10.0.0.1:8080")
    assert line is not None
    fetched, checked, run = line.split(" && ")
    assert f"https://10.0.0.1:8080/install/{digest}.sh" in fetched
    assert f"echo '{digest}  weft-install' | sha256sum -c --quiet" == checked
    assert "WEFT_JOIN_TOKEN=s1.d sh weft-install --join https://10.0.0.1:8080" == run
    # and where the mesh is for this machine alone there is none
    state.settings.write_text("{}")
    assert join_line.install_line(state, "https://10.0.0.1:8080") is None
