"""State folder, run file, ports, logs: what an embedded mesh keeps."""

import errno
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from weft_client.failure import Failure
from weft_embedded import logs, ports, prerequisites, run_file
from weft_embedded.own_secrets import join_secret
from weft_embedded.run_file import PartRow
from weft_embedded.state import State, default_folder, write_private
from weft_servers import port
from weft_servers.port import choose

NAMES = ("nats", "registry")


@pytest.fixture
def listener() -> Iterator[int]:
    """A port that is taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_the_state_is_its_owners_alone(tmp_path: Path) -> None:
    state = State(tmp_path / "a" / "state")
    state.prepare()
    write_private(state.join_token, "secret")

    assert state.folder.stat().st_mode & 0o777 == 0o700
    assert state.join_token.stat().st_mode & 0o777 == 0o600


def test_a_state_that_cant_be_made_names_another_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match="--state DIR"):
        State(tmp_path / "file" / "state").prepare()


def test_the_state_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WEFT_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert tmp_path / "weft" == default_folder()
    monkeypatch.setenv("WEFT_STATE", str(tmp_path / "own"))
    assert tmp_path / "own" == default_folder()


def test_ports_are_chosen_once(tmp_path: Path) -> None:
    [gateway] = choose(1)
    first = ports.chosen(tmp_path / "ports.json", NAMES, gateway)
    again = ports.chosen(tmp_path / "ports.json", NAMES, None)

    assert first == again
    assert gateway == again["gateway"]
    assert len(set(again.by_name.values())) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a bound socket keeps servers off")
def test_two_meshes_that_start_at_once_share_no_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a mesh that has chosen its ports, among few, and listens on none yet
    people_chose = port.take(2)
    [gateway, other] = [each.number for each in people_chose]
    monkeypatch.setattr(port, "_FIRST", first := gateway // 100 * 100)
    monkeypatch.setattr(port, "_LAST", first + 99)
    names = tuple(f"service-{number}" for number in range(30))
    one = ports.chosen(tmp_path / "one.json", names, gateway)
    # when another does so, as a process that knows nothing of the first, and both once more with what they pinned
    monkeypatch.setattr(port, "_LATELY", deque[int](maxlen=200))
    two = ports.chosen(tmp_path / "two.json", names, other)
    # then
    assert not {*one.by_name.values()} & {*two.by_name.values()}
    assert () == one.moved == two.moved
    assert one == ports.chosen(tmp_path / "one.json", names, None)


def test_a_busy_gateway_port_is_named_with_another_one_to_choose(tmp_path: Path, listener: int) -> None:
    with pytest.raises(Failure, match=f"port {listener} on 127.0.0.1 is taken.*--port [0-9]+"):
        ports.chosen(tmp_path / "ports.json", NAMES, listener)


@pytest.mark.parametrize(("gateway", "nats", "instead"), [(80, None, "--port"), (None, 90, "--nats-port")])
def test_a_low_port_without_the_right_is_no_taken_one_and_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gateway: int | None, nats: int | None, instead: str
) -> None:
    bind = socket.socket.bind

    def as_for_everybody(self: socket.socket, address: tuple[str, int]) -> None:
        if address[1] < 1024:
            raise PermissionError(errno.EACCES, "Permission denied")
        bind(self, address)

    monkeypatch.setattr(socket.socket, "bind", as_for_everybody)
    monkeypatch.setattr("weft_servers.port.first_for_all", lambda: 1024)
    with pytest.raises(Failure, match=f"ports below 1024 need a right.* weft up {instead} [0-9]+") as refused:
        ports.chosen(tmp_path / "ports.json", NAMES, gateway or choose()[0], nats=nats)
    assert "taken" not in str(refused.value)
    assert sys.platform != "linux" or "sysctl net.ipv4.ip_unprivileged_port_start" in str(refused.value)


def test_a_pinned_port_that_a_stranger_took_is_replaced_and_reported(tmp_path: Path, listener: int) -> None:
    [gateway] = choose(1)
    write_private(tmp_path / "ports.json", f'{{"nats": {listener}}}')

    found = ports.chosen(tmp_path / "ports.json", NAMES, gateway)

    assert found.moved == ("nats",)
    assert listener != found["nats"]
    assert found["nats"] == ports.chosen(tmp_path / "ports.json", NAMES, None)["nats"]


def test_the_run_file_knows_its_own_process_from_another_of_the_same_number(tmp_path: Path) -> None:
    state = State(tmp_path)
    record = replace(run_file.new("http://127.0.0.1:1"), parts=(PartRow("nats", "ready", 1, 0, 4222, "log"),))
    record.write(state)

    found = run_file.read(state)

    assert record == found
    assert record.alive()
    assert not replace(record, started=record.started - 100).alive()


def test_the_run_file_of_an_ended_process_is_not_alive(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(20)
    assert not replace(run_file.new("http://127.0.0.1:1"), pid=ended.pid).alive()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_damaged_run_file_counts_as_none(tmp_path: Path, text: str) -> None:
    State(tmp_path).run_file.write_text(text)
    assert run_file.read(State(tmp_path)) is None


def test_the_join_secret_is_made_once(tmp_path: Path) -> None:
    first = join_secret(tmp_path / "token")
    assert first == join_secret(tmp_path / "token")
    assert len(first) == 43


def test_a_large_log_is_set_aside_while_its_writer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "KEEP_BYTES", 10)
    log = tmp_path / "part.log"
    fd = logs.open_for_append(log)
    try:
        os.write(fd, b"a long first line\n")
        logs.rotate(log)
        os.write(fd, b"next\n")
    finally:
        os.close(fd)

    assert (tmp_path / "part.log.1").read_text() == "a long first line\n"
    assert log.read_text() == "next\n"
    assert logs.tail(log).endswith("\n  next")


def test_a_disk_with_too_little_room_is_told_by_both_figures(
    tmp_path: Path,
) -> None:
    new = prerequisites.disk_missing(tmp_path, 100 << 20)
    assert new is not None
    assert f"{tmp_path} has too little room: 192 MiB free are needed and 100 MiB are" in new
    assert prerequisites.disk_missing(tmp_path, 300_000_000) is None
    State(tmp_path).trust.mkdir()
    assert prerequisites.disk_missing(tmp_path, 100 << 20) is None
    assert "64 MiB free are needed and 5 MiB are" in str(prerequisites.disk_missing(tmp_path, 5 << 20))


def test_a_processor_without_avx2_is_told_apart() -> None:
    assert prerequisites.has_avx2("processor : 0\nflags\t\t: fpu sse avx avx2\n")
    assert not prerequisites.has_avx2("processor : 0\nflags\t\t: fpu sse avx\n")
    assert prerequisites.has_avx2("")


def test_a_missing_libgomp_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(Failure, match="apt install libgomp1"):
        prerequisites.check()
