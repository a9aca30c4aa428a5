"""llama.cpp's port: kept connections, and servers that misbehave."""

import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from weft_engine.adapters.llamacpp_http import HttpAnswer, LlamaCppHttp


class Server:
    """Answers what it was told to, one answer a request; a None closes the connection instead."""

    def __init__(self, answers: list[bytes | None]) -> None:
        self.asked: list[bytes] = []
        self.connections = 0
        self._answers = answers
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = LlamaCppHttp(f"http://127.0.0.1:{self._listening.getsockname()[1]}", "the-key")
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while self._answers:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                while self._answers and (request := connection.recv(65536)):
                    self.asked.append(request)
                    answer = self._answers.pop(0)
                    if answer is None:
                        break
                    for at in range(0, len(answer), 7):  # no answer arrives in one piece
                        connection.sendall(answer[at : at + 7])
                    if b"close" in answer:
                        break

    def close(self) -> None:
        self.port.close()
        self._listening.close()


def said(body: object, more: str = "") -> bytes:
    written = json.dumps(body).encode()
    return f"HTTP/1.1 200 OK\r\ncontent-length: {len(written)}\r\n{more}\r\n".encode() + written


@pytest.fixture
def serve() -> Iterator[Callable[[list[bytes | None]], Server]]:
    servers: list[Server] = []

    def start(answers: list[bytes | None]) -> Server:
        servers.append(Server(answers))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


ServeAnswers = Callable[[list[bytes | None]], Server]


def test_a_connection_is_used_again_and_carries_the_key(serve: ServeAnswers) -> None:
    server = serve([said({"prompt": "ä" * 90_000}), said([1])])

    first, second = server.port.ask("POST", "/apply-template", {"messages": []}), server.port.ask("GET", "/props")

    assert (HttpAnswer(200, {"prompt": "ä" * 90_000}), HttpAnswer(200, [1])) == (first, second)
    assert 1 == server.connections
    assert server.asked[0].startswith(b"POST /apply-template HTTP/1.1\r\n")
    assert all(b"Authorization: Bearer the-key\r\n" in asked for asked in server.asked)
    assert server.asked[0].endswith(b'{"messages": []}')


@pytest.mark.parametrize("ends", [None, said(1, "Connection: close\r\n")], ids=["silently", "with a word"])
def test_a_connection_that_the_server_closes_is_replaced(serve: ServeAnswers, ends: bytes | None) -> None:
    server = serve([said(1), ends, said(2)])
    server.port.ask("GET", "/one")
    if ends is not None:
        server.port.ask("GET", "/another")

    assert HttpAnswer(200, 2) == server.port.ask("GET", "/two")
    assert 2 == server.connections


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 200 OK\r\n\r\n{}", b"SSH-2.0\r\n\r\n", said("")[:-1] + b"?"],
    ids=["no length", "no http", "no json"],
)
def test_an_answer_that_is_not_understood_is_an_error_and_leaves_the_port_usable(
    serve: ServeAnswers, answer: bytes
) -> None:
    server = serve([answer, answer, answer, answer, said(3)])
    for _ in range(4):
        with pytest.raises(ValueError, match="its answer"):
            server.port.ask("GET", "/bad")

    assert HttpAnswer(200, 3) == server.port.ask("GET", "/good")


def test_a_port_where_nobody_answers_is_an_error(serve: ServeAnswers) -> None:
    server = serve([])
    server.close()

    with pytest.raises(ConnectionRefusedError):
        server.port.ask("GET", "/props")
