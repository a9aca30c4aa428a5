"""`weft keys`, and which key a command shows to whom."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from weft_cli import locate
from weft_cli.app import app
from weft_client.failure import Exit, Failure
from weft_contracts.api_key import first_key, hash_of
from weft_embedded import own_secrets, run_file
from weft_embedded.state import State
from weft_testing.fake_gateway import FakeGateway

Weft = Callable[[str], Any]


@pytest.fixture
def weft(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> Weft:
    """Runs a command line against the fake gateway."""
    monkeypatch.setenv("WEFT_URL", fake.url)
    return lambda line: CliRunner().invoke(app, line.split())


@pytest.fixture
def state(tmp_path: Path, fake: FakeGateway) -> State:
    """A state whose mesh runs, as far as its run file says, behind the fake gateway."""
    state = State(tmp_path / "state")
    state.prepare()
    run_file.new(fake.url).write(state)
    fake.otherwise = (200, {})
    return state


def shown(fake: FakeGateway) -> list[str | None]:
    """What each request had for a key."""
    return [headers.get("Authorization") for headers in fake.headers]


def test_a_new_key_is_asked_for_and_its_secret_is_printed(fake: FakeGateway, weft: Weft) -> None:
    fake.otherwise = (201, {"key": "k-1", "secret": "weft-secret"})
    done = weft("keys create --name ann --scope inference --scope read --model tiny --expires 30d")
    body = {"name": "ann", "scopes": ["inference", "read"], "models": ["tiny"], "expires_in_s": 2_592_000}
    assert (0, [("POST", "/api/keys", body)]) == (done.exit_code, fake.asked)
    assert "\nweft-secret\n" in done.stdout


def test_a_key_is_for_inference_unless_more_is_asked_for(fake: FakeGateway, weft: Weft) -> None:
    fake.otherwise = (201, {"key": "k-1", "secret": "s"})
    weft("keys create")
    assert {"name": "", "scopes": ["inference"], "models": None, "expires_in_s": None} == fake.asked[0][2]


def test_keys_are_listed_page_by_page_and_no_name_commands_the_terminal(fake: FakeGateway, weft: Weft) -> None:
    key = {"prefix": "weft-00000000", "scopes": ["admin", "read"], "models": ["a", "b"], "state": "live"}
    first = key | {"id": "k-1", "name": "a\x1b[31mnn", "expires_at": None}
    second = key | {"id": "k-2", "name": None, "expires_at": 1.0, "models": None}
    fake.answers[("GET", "/api/keys?limit=1000")] = (200, {"items": [first], "next": "k-1"})
    fake.answers[("GET", "/api/keys?limit=1000&after=k-1")] = (200, {"items": [second], "next": None})
    said = weft("keys").stdout
    assert "\x1b" not in said
    assert ["k-1", "a[31mnn", "weft-00000000", "admin,", "read", "a,", "b", "live", "never"] == said.splitlines()[
        1
    ].split()
    assert ["k-2", "-", "weft-00000000", "admin,", "read", "all", "live", "expired"] == said.splitlines()[2].split()


@pytest.mark.parametrize(
    ("line", "method", "path", "words"),
    [
        ("keys revoke k-1", "DELETE", "/api/keys/k-1", "k-1 is revoked"),
        ("keys revoke a/b", "DELETE", "/api/keys/a%2Fb", "k-1 is revoked"),
        ("keys forget k-1", "DELETE", "/api/keys/k-1/name", "the name of k-1 is erased"),
    ],
)
def test_a_key_is_ended_or_its_name_erased(
    fake: FakeGateway, weft: Weft, line: str, method: str, path: str, words: str
) -> None:
    fake.otherwise = (200, {"key": "k-1"})
    done = weft(line)
    assert [(method, path, None)] == fake.asked
    assert words in done.stdout


@pytest.mark.parametrize(
    "line", ["keys create --scope boss", "keys create --expires soon", "keys revoke", "keys --json first"]
)
def test_what_cant_be_meant_is_wrong_usage_and_asks_nothing(fake: FakeGateway, weft: Weft, line: str) -> None:
    done = weft(line)
    failure = done.exception
    assert Exit.USAGE == (failure.exit if isinstance(failure, Failure) else done.exit_code), done.output
    assert [] == fake.asked


def test_a_first_key_is_drawn_without_asking_anybody_and_told_by_its_hash(fake: FakeGateway, weft: Weft) -> None:
    made, other = (json.loads(weft("keys first --json").stdout) for _ in range(2))
    assert [] == fake.asked
    assert made["secret"] != other["secret"]
    assert first_key(made["secret"]) == made["WEFT_FIRST_KEY"]
    assert hash_of(made["secret"]) in made["WEFT_FIRST_KEY"]
    said = weft("keys first").stdout
    assert "WEFT_FIRST_KEY=weft-" in said


def test_a_states_key_goes_to_its_own_mesh(fake: FakeGateway, state: State) -> None:
    secret = own_secrets.admin_key(state.admin_key)
    locate.gateway(state.folder, None).delete("/x")
    locate.gateway(state.folder, fake.url + "/").delete("/x")
    assert [f"Bearer {secret}"] * 2 == shown(fake)
    assert 0o600 == state.admin_key.stat().st_mode & 0o777
    assert secret == own_secrets.admin_key(state.admin_key)


def test_a_states_key_goes_to_no_other_address(fake: FakeGateway, state: State) -> None:
    own_secrets.admin_key(state.admin_key)
    port = fake.url.rpartition(":")[2]
    locate.gateway(state.folder, f"http://localhost:{port}").delete("/x")
    # nor anywhere once its mesh has ended: another's may have come to its address
    run_file.RunFile(1, 0.0, fake.url, 0.0, "ready").write(state)
    locate.gateway(state.folder, fake.url).delete("/x")
    assert [None, None] == shown(fake)


def test_a_key_that_is_named_goes_before_the_states_own(
    fake: FakeGateway, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_secrets.admin_key(state.admin_key)
    monkeypatch.setenv("WEFT_API_KEY", "weft-named")
    locate.gateway(state.folder, None).delete("/x")
    assert ["Bearer weft-named"] == shown(fake)
