"""`weft dev`: what it asks a launcher for, and the logs that it shows as one stream."""

import json
import os
from pathlib import Path

import pytest
from weft_cli.commands import dev
from weft_cli.log_stream import LogStream
from weft_devtools import tree
from weft_devtools.dev import members
from weft_devtools.dev.affected import WORKER, Affected
from weft_embedded import run_file
from weft_embedded.mesh_plan import SERVICES
from weft_embedded.run_file import PartRow, RunFile
from weft_embedded.state import State


@pytest.fixture
def state(tmp_path: Path) -> State:
    """One whose mesh has two workers."""
    state = State(tmp_path / "state")
    state.prepare()
    rows = (PartRow(name, "ready", 1, 0, None, "") for name in ("nats", "scheduler", "gateway", "worker-1", "worker-2"))
    RunFile(
        os.getpid(), run_file.started_at(os.getpid()) or 0.0, "http://127.0.0.1:1", 0.0, "ready", tuple(rows)
    ).write(state)
    return state


def test_the_trees_services_are_those_that_the_launcher_knows() -> None:
    of_tree = {each.service for each in members.read(tree.root()).by_folder.values() if each.service}
    assert {*SERVICES, WORKER} == of_tree


@pytest.mark.parametrize(
    ("found", "orders"),
    [
        (Affected(frozenset({"scheduler", "registry"})), [("anew", "scheduler")]),
        (Affected(agents=True), [("anew-agent", "worker-1"), ("anew-agent", "worker-2")]),
        (
            Affected(frozenset({"gateway"}), agents=True, workers=True),
            [("anew", "gateway"), ("anew", "worker-1"), ("anew", "worker-2")],
        ),
        (Affected(launcher=True, environment=frozenset({"pyproject.toml"})), []),
    ],
)
def test_only_parts_that_run_are_started_anew(state: State, found: Affected, orders: list[tuple[str, str]]) -> None:
    assert orders == dev._orders(found, state)


def test_what_can_not_be_started_anew_from_within_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    dev._tell(frozenset({"requirements.lock", "libs/embedded/src/weft_embedded/up.py"}), Affected(launcher=True))
    dev._tell(frozenset({"requirements.lock"}), Affected(environment=frozenset({"requirements.lock"})))
    assert [
        "dev: the launcher itself runs on with its old code: end this and start it again",
        "dev: requirements.lock changed: end this and start it again, which makes the environment anew",
    ] == capsys.readouterr().out.splitlines()


def test_the_stream_begins_with_what_is_written_from_now_on_and_says_whose_each_line_is(state: State) -> None:
    # given what stood there before
    state.log("scheduler").write_text("old\n")
    stream = LogStream(state)
    # when
    with state.log("scheduler").open("a") as log:
        log.write(json.dumps({"event": "leads", "level": "info", "timestamp": "2026-01-01T10:00:00Z"}) + "\nhalf")
    state.log("launcher").write_text("told by itself\n")
    hosts = state.worker(1) / "logs"
    hosts.mkdir(parents=True)
    (hosts / "host-m-1-1.log").write_text("loads \x1b[2J\n")
    # then
    assert [("scheduler", "10:00:00 info    leads"), ("m-1-1", "loads [2J")] == stream.lines(styled=False)
    with state.log("scheduler").open("a") as log:
        log.write(" a line\n")
    assert [("scheduler", "half a line")] == stream.lines(styled=False)
    # and a log that was set aside is read from its beginning
    state.log("scheduler").write_text("new\n")
    assert [("scheduler", "new")] == stream.lines(styled=False)
