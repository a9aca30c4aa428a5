"""Engines' ports count upwards from the one that was set."""

import socket

import pytest
from weft_servers import port as ports
from weft_worker_agent.outbound.processes.engine_ports import RANGE, NoPort, next_port

HOST = "127.0.0.1"


def test_without_a_first_port_the_system_chooses() -> None:
    assert 0 == next_port(HOST, 0, ())


def test_the_lowest_free_port_is_taken_that_no_living_engine_has() -> None:
    (first,) = ports.choose(1)
    assert first == next_port(HOST, first, ())
    assert first < next_port(HOST, first, {first}) < first + RANGE
    with socket.create_server((HOST, first)):
        assert first < next_port(HOST, first, ())


def test_where_none_is_left_that_is_said() -> None:
    with pytest.raises(NoPort, match=r"none of the ports 65535 to 65535 is free on 127\.0\.0\.1: set WEFT_GRPC_PORT"):
        next_port(HOST, 65535, {65535})
