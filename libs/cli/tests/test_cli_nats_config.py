"""`weft nats-config`: the configuration of one's own NATS servers."""

from pathlib import Path

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_client.failure import Exit, Failure
from weft_embedded.state import State


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(tmp_path / "state")
    made.prepare()
    return made


def config(state: State, *words: str) -> str:
    """What the command prints. Raises Failure as it does."""
    done = CliRunner().invoke(app, ["nats-config", "--state", str(state.folder), *words])
    if isinstance(done.exception, Failure):
        raise done.exception
    assert 0 == done.exit_code, done.output
    return done.stdout


def test_the_configuration_of_servers_is_written_for_each_and_tells_how_to_go_on(state: State, tmp_path: Path) -> None:
    said = config(state, "--out", str(tmp_path / "nats"), "n1=10.0.0.1", "n2=10.0.0.2", "n3=10.0.0.3")
    assert "WEFT_NATS_URL=tls://10.0.0.1:4222,tls://10.0.0.2:4222,tls://10.0.0.3:4222 weft up" in said
    for name in ("n1", "n2", "n3"):
        own = tmp_path / "nats" / name
        assert f"copy {own} to 10.0.0." in said
        files = {"nats.conf", "certificate.pem", "key.pem", "authority.pem", "jetstream", "accounts"}
        assert files == {each.name for each in own.iterdir()}
        assert not [each for each in own.iterdir() if each.stat().st_mode & 0o077]
    # and it isn't written over
    with pytest.raises(Failure, match="is there already"):
        config(state, "--out", str(tmp_path / "nats"), "n1=10.0.0.1")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["n1"], "'n1' names no server: want NAME=HOST"),
        (["n1=a", "n1=b", "n2=c"], "two servers have the same name"),
        (["n1=a", "n2=b"], "2 servers: want 1, or 3 or 5"),
    ],
)
def test_servers_that_cant_be_meant_are_wrong_usage(state: State, words: list[str], says: str) -> None:
    with pytest.raises(Failure) as failure:
        config(state, *words)
    assert says in str(failure.value)
    assert Exit.USAGE == failure.value.exit
