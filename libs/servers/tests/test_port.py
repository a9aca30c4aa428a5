"""Ports: chosen, checked, pinned."""

import errno
import json
import socket
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from weft_servers import port as ports
from weft_servers.port import LOOPBACK, NoFreePort, PortInUse, PortNeedsRight, check_free, choose, hold, pinned, take


def test_chosen_ports_are_distinct_free_and_apart_from_outgoing_connections():
    ports = choose(20)

    assert len(set(ports)) == 20
    assert all(20_000 <= each < 32_768 for each in ports)
    for each in ports:
        check_free(each)


def test_a_port_that_was_given_out_is_not_given_again_before_its_owner_can_listen(monkeypatch: pytest.MonkeyPatch):
    ten_ports(monkeypatch)
    # when they are asked for one by one
    given = [choose()[0] for _ in range(5)]
    # then each is another
    assert 5 == len(set(given))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a bound socket keeps servers off")
def test_a_held_port_is_given_to_nobody_but_its_server_may_listen_there(monkeypatch: pytest.MonkeyPatch) -> None:
    ten_ports(monkeypatch)
    # given ports that one process holds: two new ones, and one that it had before
    one, two = take(2)
    [three] = choose()
    again = hold(three)
    assert again is not None

    def another_process_is_given() -> set[int]:
        monkeypatch.setattr(ports, "_LATELY", deque[int](maxlen=200))
        with ports.taken(7) as given:
            return set(given)

    # when others choose, they are given the rest, whether a server listens or has ended
    others = another_process_is_given()
    assert not others & {one.number, two.number, three}
    with socket.create_server((LOOPBACK, one.number)), socket.create_server((LOOPBACK, three)):
        assert others == another_process_is_given()
    assert others == another_process_is_given()
    # and what is let go is for everybody
    for each in (one, two, again):
        each.release()
    monkeypatch.setattr(ports, "_LATELY", deque[int](maxlen=200))
    assert 10 == len(choose(10))


def test_a_port_that_a_stranger_listens_on_is_not_held_nor_in_the_way(listener: socket.socket) -> None:
    number = listener.getsockname()[1]
    assert sys.platform != "linux" or hold(number) is None
    with pytest.raises(PortInUse):
        check_free(number)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server((LOOPBACK, 0)) as server:
        yield server


def ten_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that there are to choose from, and nobody listens on any."""
    for first in range(choose()[0] // 10 * 10, 60_000, 10):
        monkeypatch.setattr(ports, "_FIRST", first)
        monkeypatch.setattr(ports, "_LAST", first + 9)
        monkeypatch.setattr(ports, "_LATELY", deque[int](maxlen=200))
        try:
            choose(10)
        except NoFreePort:
            continue
        monkeypatch.setattr(ports, "_LATELY", deque[int](maxlen=200))
        return
    raise AssertionError("no ten ports in a row are free")


def test_a_taken_port_is_named():
    [port] = choose()
    with socket.create_server((LOOPBACK, port)), pytest.raises(PortInUse, match=str(port)) as refused:
        check_free(port)

    assert port == refused.value.port
    check_free(port)


def test_asking_for_more_ports_than_there_are_ends():
    with pytest.raises(NoFreePort):
        choose(500)


def test_ports_are_chosen_once_and_new_names_are_added(tmp_path: Path):
    file = tmp_path / "ports.json"

    first = pinned(file, "nats", "gateway")
    second = pinned(file, "gateway", "postgres")

    assert first["gateway"] == second["gateway"]
    assert {**first, **second} == json.loads(file.read_text())
    assert len(set({**first, **second}.values())) == 3


def test_a_port_that_needs_a_right_is_not_called_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", forbidden)
    monkeypatch.setattr("weft_servers.port.first_for_all", lambda: 1024)
    with pytest.raises(PortNeedsRight, match=r"port 80 of 127\.0\.0\.1: ports below 1024 need a right") as low:
        check_free(80)
    with pytest.raises(PortNeedsRight) as other:
        check_free(8080)
    assert (80, "this user may not listen on port 8080 of 127.0.0.1") == (low.value.port, str(other.value))
