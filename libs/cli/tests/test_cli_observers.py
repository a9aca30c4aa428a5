"""Where an observer's secret goes, and how long its place is kept."""

from pathlib import Path
from typing import Literal

import pytest
from weft_cli.commands import observers
from weft_client.failure import Exit, Failure
from weft_embedded.observers import NewObserver, Observers
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


@pytest.fixture(autouse=True)
def placed(monkeypatch: pytest.MonkeyPatch) -> list[NewObserver]:
    """The places that the log's server was asked for; there is none here."""
    asked: list[NewObserver] = []

    async def make(self: Observers, new: NewObserver, url: str) -> int:
        asked.append(new)
        return 1

    monkeypatch.setattr(Observers, "_make_place", make)
    return asked


def add(
    state: State,
    out: Path | None = None,
    name: str = "press",
    since: Literal["now", "start"] = "now",
    keep: str = "30d",
) -> None:
    observers.add(state.folder, None, NATS, name, since, keep, None, out, as_json=False)


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

    def watched(self: Observers, new: NewObserver, nats_url: str) -> str:
        modes.append((tmp_path / "mine").stat().st_mode & 0o777)
        return real(self, new, nats_url)

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


def test_its_place_begins_and_is_kept_as_it_was_asked_for(state: State, placed: list[NewObserver]) -> None:
    add(state)
    add(state, name="lake", since="start", keep="12h")
    assert [NewObserver("press", False, 30 * 86_400), NewObserver("lake", True, 12 * 3_600)] == placed


@pytest.mark.parametrize("keep", ["59m", "366d", "for ever"])
def test_a_place_is_kept_for_a_bounded_time(state: State, keep: str, placed: list[NewObserver]) -> None:
    with pytest.raises(Failure, match="--keep"):
        add(state, keep=keep)
    assert [] == placed


def test_where_the_log_is_away_nobody_is_added_and_no_file_is_left(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("weft_embedded.observers._CONNECT_S", 0.2)
    with pytest.raises(Failure, match="there is no place for press yet: the event log at nats://"):
        observers.add(state.folder, None, "nats://127.0.0.1:1", "press", "now", "30d", None, None, as_json=False)
    assert [] == Observers(state.trust).known()
    assert not (state.folder / "observers" / "press.creds").exists()


def test_one_that_knows_no_place_is_shown_as_hearing_nothing(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    (state.trust / "observers.json").write_text('{"observers":[{"name":"old","key":"U","made_at":1.0}]}')
    observers.show(state.folder, None, as_json=False)
    assert "nothing: add it anew" in capsys.readouterr().out


def test_there_are_only_so_many(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft_embedded.observers.OBSERVERS", 1)
    add(state)
    with pytest.raises(Failure, match="there are 1 observers, and no more may be"):
        add(state, name="second")
