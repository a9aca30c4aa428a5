"""What a worker is told, by flags, variables and a file, and what is said of what can't be meant."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner
from weft_cli.app import app
from weft_cli.commands.worker import own_address, settings
from weft_cli.worker_app import worker
from weft_cli.worker_options import VARIABLES
from weft_client.failure import Exit, Failure

GOOD = {"join": "http://127.0.0.1:8080/", "token": "t"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "worker.toml"


def test_every_option_of_the_command_line_is_a_variable_and_a_line_of_the_file(file: Path) -> None:
    # given
    flags = set(worker.__annotations__) - {"config", "return"}
    assert flags == {name.replace("-", "_") for name in VARIABLES}
    texts = dict.fromkeys(VARIABLES, "4000") | {"join": "http://127.0.0.1:1", "labels": "a=4000"}
    texts |= {"state": "/4000", "vram-budget": "40%"}
    # when said in one of three ways
    file.write_text("\n".join(f'{name} = "{text}"' for name, text in texts.items()))
    by_flags = settings(dict(texts), {})
    by_file = settings({}, {}, file)
    by_variables = settings({"state": "/4000"}, {VARIABLES[name]: text for name, text in texts.items()})
    # then it is the same
    assert {VARIABLES[name]: text for name, text in texts.items()} | {"WEFT_HTTP_HOST": "4000"} == by_flags
    assert by_flags == by_file == by_variables


def test_flags_stand_over_variables_and_these_over_the_file(file: Path) -> None:
    file.write_text(
        'name = "file"\nlabels = {zone = "file", disk = "fast"}\ngrpc-port = 4000\ndevices = ["0", "!amd"]\n'
    )
    found = settings({**GOOD, "name": "flag"}, {"WEFT_NODE_NAME": "variable", "WEFT_GRPC_PORT": "5000"}, file)
    assert ("flag", "5000") == (found["WEFT_NODE_NAME"], found["WEFT_GRPC_PORT"])
    assert ("zone=file,disk=fast", "0,!amd") == (found["WEFT_LABELS"], found["WEFT_DEVICES"])


@pytest.mark.parametrize(
    ("flags", "text", "says"),
    [
        ({"labels": "zone"}, "", "--labels: 'zone' is no label: want KEY=VALUE, separated by commas"),
        ({"http-port": "70000"}, "", "--http-port: want a port, 1 to 65535, or 0 for any free one, not 70000"),
        ({"grpc-port": "x"}, "", "--grpc-port: want a whole number, not 'x'"),
        ({"vram-budget": "12"}, "", "--vram-budget: '12' is no VRAM budget: want"),
        ({"max-replicas-per-model": "-1"}, "", "--max-replicas-per-model: want a whole number, not '-1'"),
        ({}, 'lables = "a=b"', "worker.toml: `lables` is no setting of a worker; did you mean `labels`?"),
        ({}, "colour = 1", "worker.toml: `colour` is no setting of a worker; there are join, token, name"),
        ({}, "http-port = true", "worker.toml: http-port: want a whole number, not True"),
        ({}, "name = 7", "worker.toml: name: want a text, not 7"),
        ({}, "labels = {zone = 7}", 'worker.toml: labels: want a table such as {zone = "a"}, not'),
        ({}, "name = ", "worker.toml: it is no TOML: "),
        ({"token": None}, "", "a worker needs a registration token: --token, or WEFT_JOIN_TOKEN"),
        ({"join": None}, "", "a worker needs the mesh's address: --join URL, or WEFT_GATEWAY_URL"),
        ({"join": "ftp://x"}, "", "ftp://x"),
        ({"join": "http://no-such-host.invalid:1"}, "", "this machine has no way to no-such-host.invalid"),
    ],
)
def test_what_cant_be_meant_is_said_in_one_sentence(
    file: Path, flags: dict[str, str | None], text: str, says: str
) -> None:
    file.write_text(text)
    with pytest.raises(Failure) as failure:
        settings({**GOOD, **flags}, {}, file)
    assert Exit.USAGE == failure.value.exit
    assert says in str(failure.value)


def test_a_file_that_isnt_there_is_wrong_usage(tmp_path: Path) -> None:
    missing = CliRunner().invoke(app, ["worker", "--config", str(tmp_path / "none.toml")])
    assert isinstance(missing.exception, Failure)
    assert "it can't be read: No such file" in str(missing.exception)


def test_who_says_nothing_of_its_address_is_reached_where_the_gateway_is_reached_from() -> None:
    assert "127.0.0.1" == own_address("http://localhost:1")
    assert "127.0.0.1" == own_address("http://[::1]:8080")
    found = settings(GOOD, {})
    assert ("127.0.0.1", "127.0.0.1") == (found["WEFT_ADVERTISE_HOST"], found["WEFT_HTTP_HOST"])
    elsewhere = settings({**GOOD, "advertise": "box.example"}, {"WEFT_HTTP_HOST": "0.0.0.0"})
    assert ("box.example", "0.0.0.0") == (elsewhere["WEFT_ADVERTISE_HOST"], elsewhere["WEFT_HTTP_HOST"])


def test_a_worker_that_still_loads_is_not_killed_by_being_asked_for_another_agent(tmp_path: Path) -> None:
    # given one whose imports take as long as somebody holds the other end of a pipe
    held = tmp_path / "held"
    os.mkfifo(held)
    (tmp_path / "typer.py").write_text(f"open({str(held)!r}).read()\nraise SystemExit(7)\n")
    command = [sys.executable, "-m", "weft_cli", "worker", "--join", "http://127.0.0.1:1"]
    loading = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(tmp_path)}, stdin=subprocess.DEVNULL)
    with held.open("w"):  # it is at them
        # when it is asked
        loading.send_signal(signal.SIGUSR1)
    # then it goes on
    assert 7 == loading.wait(30)


def test_a_command_that_becomes_no_worker_ends_by_that_signal(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    (tmp_path / "typer.py").write_text(f"open({str(held)!r}).read()\n")
    command = [sys.executable, "-m", "weft_cli", "status"]
    loading = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(tmp_path)}, stdin=subprocess.DEVNULL)
    with held.open("w"):
        loading.send_signal(signal.SIGUSR1)
        assert -signal.SIGUSR1 == loading.wait(30)
