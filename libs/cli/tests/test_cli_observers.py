"""Where an observer's secret goes."""

from pathlib import Path

import pytest
from weft_cli.commands import observers
from weft_client.failure import Exit, Failure
from weft_embedded.observers import Observers
from weft_embedded.state import State
from weft_identity import trust
from weft_identity.mesh_exports import mesh_exports

NATS = "nats://127.0.0.1:4222"


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(tmp_path / "state")
    made.prepare()
    trust.load_or_make(made.trust, mesh_exports())
    return made


def add(state: State, out: Path | None = None, name: str = "press") -> None:
    observers.add(state.folder, None, NATS, name, None, out, as_json=False)


def test_without_a_word_about_it_a_secret_lies_in_the_state_and_nowhere_else(
    state: State, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    add(state)
    file = state.folder / "observers" / "press.creds"
    assert (0o600, 0o700) == (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777)
    assert str(file) in capsys.readouterr().out
    assert [] == [*here.iterdir()]


def test_it_goes_where_it_is_told_for_its_owners_eyes_from_the_first_byte_on(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    real = Observers.add

    def watched(self: Observers, name: str, expires_in_s: int | None) -> str:
        modes.append((tmp_path / "mine").stat().st_mode & 0o777)
        return real(self, name, expires_in_s)

    monkeypatch.setattr(Observers, "add", watched)
    add(state, tmp_path / "mine")
    assert [0o600] == modes
    assert "NATS USER JWT" in (tmp_path / "mine").read_text()


@pytest.mark.parametrize("kind", ["a file", "a link to nothing", "no folder", "the certificate's"])
def test_where_no_secret_can_be_written_nobody_may_listen(state: State, tmp_path: Path, kind: str) -> None:
    file = tmp_path / ("folder/x" if kind == "no folder" else "x.pem" if kind == "the certificate's" else "x")
    if kind == "a file":
        file.write_text("kept")
    if kind == "a link to nothing":
        file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Failure) as refused:
        add(state, file)
    assert (Exit.USAGE, True) == (refused.value.exit, str(file) in str(refused.value))
    assert [] == Observers(state.trust).known()
    assert not (tmp_path / "elsewhere").exists()
    assert kind != "a file" or file.read_text() == "kept"


def test_a_name_that_is_taken_leaves_no_file(state: State, tmp_path: Path) -> None:
    add(state)
    with pytest.raises(Failure, match="there is an observer press already"):
        add(state, tmp_path / "second")
    assert not (tmp_path / "second").exists()
