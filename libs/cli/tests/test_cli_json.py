"""`--json`: every command that prints data has it, says one document with it, and its errors are JSON, too."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner
from weft_cli import main
from weft_cli.app import app
from weft_client.failure import Exit
from weft_embedded import run_file
from weft_embedded.run_file import PartRow
from weft_embedded.state import State
from weft_testing.fake_gateway import FakeGateway

Weft = Callable[..., tuple[int, str, str]]

WITHOUT = {
    "worker": "becomes the worker",
    "dev": "shows what other programs say",
    "completion": "prints a shell's program",
    "test": "shows what other programs say",
    "lint": "shows what other programs say",
}
"""Commands that have no `--json`, and why."""
ELSEWHERE = {
    "up": "test_cli_up.py",
    "bench": "test_cli_logs_and_bench.py",
    "observers": "tests/integration, with keys of a mesh",
    "observers list": "as `observers`",
    "observers add": "as `observers`",
    "observers remove": "as `observers`",
    "install": "tests/deploy/systemd",
    "uninstall": "tests/deploy/systemd",
    "bundle": "tests/integration, since it takes a minute",
    "secrets set": "test_cli_secrets.py, with a value in stdin",
    "explain": "tests/integration, with a decision in a log",
}
"""Commands whose document is tried elsewhere: they need more than a gateway's answer."""

NODE: dict[str, Any] = {
    "name": "n",
    "id": "n-1",
    "state": "healthy",
    "hardware": None,
    "backends": [],
    "addresses": {},
}
MODEL: dict[str, Any] = {
    "name": "m",
    "id": "m-1",
    "revision": 1,
    "digest": "d",
    "state": "ready",
    "reason": None,
    "wanted": 1,
    "ready": 1,
    "spec": {"engine": "simulated"},
}
REPLICA: dict[str, Any] = {
    "id": "m-1-1",
    "model_name": "m",
    "revision": 1,
    "digest": "d",
    "state": "ready",
    "node_name": "n",
    "engine": "simulated",
    "engine_version": "1",
    "reason": None,
}
MESH: dict[str, Any] = {"problems": [], "brake": None, "health": "ok"}
STATUS: dict[str, Any] = {
    "nodes": [NODE],
    "models": [MODEL],
    "replicas": [REPLICA],
    "mesh": MESH,
    "log": {"position": 0},
}
LOAD: dict[str, Any] = {
    "gateway": {"instance": "g", "ready": True},
    "at_s": 1.0,
    "totals": {"tokens": 1},
    "models": [],
    "nodes": [],
    "replicas": [],
}
DONE: dict[str, Any] = {
    "request": "q-1",
    "node": "n-1",
    "revision": "1",
    "to": "1",
    "key": "k-1",
    "token": "t-1",
    "secret": "s",
    "alias": "a",
    "engine": "e",
    "digest": "d",
}
CAPS: dict[str, Any] = {"labels": {"a": "1"}, "set": {}, "caps": {"replicas_per_model": 2, "vram_budget": None}}

LINES = {
    "status": "",
    "top": "--interval 0.2",
    "down": "",
    "doctor": "",
    "hold": "gateway",
    "release": "gateway",
    "deploy": "simulated --name m --wait 0",
    "apply": "f.yaml --yes",
    "remove": "m",
    "retry": "m",
    "rollback": "m --to 1 --wait 0",
    "plan": "plan.yaml",
    "chat": "-m m hello",
    "logs": "m-1-1",
    "events": "--catalogue",
    "drain": "n",
    "nats-config": "one=10.0.0.1",
    "found": "mesh",
    "brake lift": "",
    "upgrade": "",
    "upgrade finish": "",
    "nodes": "",
    "nodes list": "",
    "nodes get": "n",
    "nodes approve": "n",
    "nodes reject": "n --reason no",
    "nodes cordon": "n",
    "nodes uncordon": "n",
    "nodes label": "n a=1",
    "nodes max-replicas": "n 2",
    "nodes vram-budget": "n 80%",
    "nodes drain": "n",
    "nodes resume": "n",
    "nodes models": "n",
    "nodes unload": "n m",
    "nodes remove": "n --force",
    "tokens": "",
    "tokens create": "",
    "tokens revoke": "t",
    "engines": "",
    "engines add": "e.json",
    "engines remove": "e",
    "aliases": "",
    "aliases list": "",
    "aliases set": "a m",
    "aliases remove": "a",
    "policies": "",
    "policies list": "",
    "policies show": "p",
    "policies set": "p.yaml",
    "policies default": "p",
    "policies withdraw": "p",
    "secrets": "",
    "secrets list": "",
    "secrets remove": "s",
    "backends": "",
    "backends add": "b.yaml",
    "backends install": "e --node n",
    "backends uninstall": "e --node n",
    "backends upgrade": "e",
    "backends remove": "e",
    "files": "",
    "files fetch": "m --nodes 2",
    "files pin": "m",
    "files unpin": "m",
    "files remove": "m --node n",
    "keys": "",
    "keys create": "",
    "keys revoke": "k",
    "keys forget": "k",
    "keys first": "",
}
"""What stands behind each command where it is tried."""
ALONE = {"down", "status", "doctor", "hold", "release", "events", "nats-config", "found", "keys first", "plan"}
"""What asks no gateway, or says as its document that none answers."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that can be called, by its words."""
    root: Any = get_command(app)
    for name, command in root.commands.items():
        inner: dict[str, Any] = getattr(command, "commands", {})
        if not inner or command.invoke_without_command:
            yield name, command
        yield from ((f"{name} {each}", one) for each, one in inner.items())


def gateway_of_a_calm_mesh(fake: FakeGateway) -> None:
    page: dict[str, Any] = {"items": [NODE], "next": None}
    request = {"node": "n-1", "request": "q-1", "number": 0, "correlation_id": "c"}
    fake.otherwise = (200, {**DONE, **CAPS, **NODE, "items": [], "next": None, "replicas": "", "cordoned": False})
    fake.answers |= {
        ("GET", "/api/status"): (200, {**STATUS, "nodes": [{**NODE, "state": "drained"}]}),
        ("GET", "/api/nodes?limit=1000"): (200, page),
        ("GET", "/api/requests/q-1"): (200, request),
        ("GET", "/api/nodes/n"): (
            200,
            {**NODE, **CAPS, "replicas": [], "cordoned": False, "drain": None, "reason": ""},
        ),
        ("GET", "/api/load?most=100"): (200, LOAD),
        ("GET", "/api/replicas/m-1-1/logs?tail=100"): (200, b"one\ntwo\n"),
        ("POST", "/api/upgrade/finish"): (200, {"request": "q-1", "raised": "node.assigned=2"}),
    }


@pytest.fixture
def weft(
    fake: FakeGateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Weft:
    """Runs a command line as a process would, on a state of its own; the exit status, stdout and stderr."""
    monkeypatch.setenv("WEFT_URL", fake.url)
    monkeypatch.setenv("WEFT_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.json").write_text("{}")
    variant = "{vendor: cpu, package: e, version: '1', requirements: [e==1], disk: 1}"
    (tmp_path / "plan.yaml").write_text("nodes: [{id: a, ram: 8GiB}]\nmodels: [{name: m, claim: {ram: 1GiB}}]\n")
    (tmp_path / "f.yaml").write_text("models: [{source: simulated, name: new}]\n")
    (tmp_path / "p.yaml").write_text("name: p\nweights: {idle: 1}\n")
    (tmp_path / "b.yaml").write_text(f"engine: e\nvariants: [{variant}]\n")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["weft", *words])
        status = main.main()
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_every_command_that_prints_data_has_it() -> None:
    found = dict(commands())
    lacking = {name for name, each in found.items() if not any("--json" in one.opts for one in each.params)}
    assert sorted(WITHOUT) == sorted(lacking)
    assert sorted(found) == sorted({*LINES, *ELSEWHERE, *WITHOUT})


@pytest.mark.parametrize("command", sorted(LINES))
def test_a_command_says_one_document_and_nothing_else(
    fake: FakeGateway, weft: Weft, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    gateway_of_a_calm_mesh(fake)
    if command in ("hold", "release"):
        own = State(tmp_path / "state")
        own.prepare()
        record = run_file.new(fake.url)
        part = PartRow("gateway", "ready", 1, 0, 1, "log")
        run_file.RunFile(record.pid, record.started, fake.url, record.since, "ready", (part,)).write(own)
        own.held("gateway").parent.mkdir(exist_ok=True)
        own.held("gateway").touch()
    status, out, err = weft(*command.split(), *LINES[command].split(), "--json")
    assert "" == err
    assert status in (Exit.OK, Exit.FAILED if command == "doctor" else Exit.OK, {"down": 3}.get(command, Exit.OK))
    assert isinstance(json.loads(out), dict | list)


@pytest.mark.parametrize("command", sorted(set(LINES) - ALONE))
def test_an_error_is_one_document_with_the_same_exit_status(fake: FakeGateway, weft: Weft, command: str) -> None:
    fake.otherwise = (422, {"detail": "it can't be"})
    words = [*command.split(), *LINES[command].split()]
    said, as_json = weft(*words), weft(*words, "--json")
    assert (int(Exit.FAILED), "", "weft: it can't be\n") == said
    assert (int(Exit.FAILED), "") == as_json[:2]
    assert {"error": {"message": "it can't be", "exit": 1}} == json.loads(as_json[2])


@pytest.mark.parametrize("words", [("deploy",), ("nodes", "get", "--bogus"), ("deploy", "x"), ("chat",), ("up",)])
def test_wrong_usage_is_one_document_too(weft: Weft, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    status, out, err = weft(*words, "--json")
    assert (int(Exit.USAGE), "") == (status, out)
    error = json.loads(err)["error"]
    assert int(Exit.USAGE) == error["exit"]
    assert error["message"]


def test_help_stays_help(weft: Weft) -> None:
    status, out, err = weft("deploy", "--json", "--help")
    assert (0, "") == (status, err)
    assert "Usage: weft deploy" in out


def test_what_stands_behind_two_dashes_is_no_option(fake: FakeGateway, weft: Weft) -> None:
    fake.otherwise = (422, {"detail": "no"})
    assert "weft: no\n" == weft("chat", "-m", "m", "--", "--json")[2]
    assert CliRunner().invoke(app, ["retry", "m"]).exit_code
