"""Where a node's own server is asked: at what its registered host comes to once, and never where nobody is asked."""

import asyncio
import socket
from typing import Any

import pytest
from weft_gateway.outbound import node_http
from weft_gateway.outbound.node_http import NodeUnreachable


class Looked:
    """A resolver that knows one name, and gives its next answer each time it is asked."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self.answers = list(answers)

    async def __call__(self, host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        assert "node.example" == host
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in self.answers.pop(0)]


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Where a connection was tried; nobody takes one."""
    tried: list[tuple[str, int]] = []

    async def connect(host: str, port: int, **_: Any) -> None:
        tried.append((host, port))
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr(asyncio, "open_connection", connect)
    return tried


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "100.100.100.200", "0.0.0.0", "224.0.0.1"]
)
async def test_link_local_and_metadata_addresses_are_not_asked(host: str, connected: list[tuple[str, int]]) -> None:
    with pytest.raises(NodeUnreachable, match="is not asked: "):
        await node_http.get(host, 80, "/logs/r")
    assert [] == connected


async def test_a_name_that_comes_to_one_such_address_among_others_is_not_asked(
    connected: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Looked(("127.0.0.1", "169.254.169.254"))
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", looked)
    with pytest.raises(NodeUnreachable, match=r"is not asked: 169\.254\.169\.254 is a link-local"):
        await node_http.get("node.example", 80, "/logs/r")
    assert [] == connected


async def test_a_name_is_resolved_once_and_what_was_checked_is_connected_to(
    connected: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Looked(("127.0.0.1", "10.0.0.1"), ("169.254.169.254",))
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", looked)
    with pytest.raises(NodeUnreachable, match="takes no connection"):
        await node_http.get("node.example", 4, "/logs/r")
    assert [("127.0.0.1", 4), ("10.0.0.1", 4)] == connected
    assert [("169.254.169.254",)] == looked.answers


async def test_a_name_without_an_address_takes_no_connection(
    connected: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", Looked(()))
    with pytest.raises(NodeUnreachable, match="has no address"):
        await node_http.get("node.example", 4, "/logs/r")
    assert [] == connected
