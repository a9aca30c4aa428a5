"""A wire between a client and a server of this machine: it carries so much and then nothing, and counts."""

import socket
import threading
from contextlib import suppress
from typing import Self

_LOOK_S = 0.05


class CutWire:
    """`most`: bytes that the client may still say in all, `went` included; None: any number."""

    def __init__(self, port: int) -> None:
        """`port`: of the server, on loopback."""
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._ended = False
        self.most: int | None = None
        self.went = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """All connections break."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open = []

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._port), 5)
            except OSError:
                client.close()
                continue
            self._open += [client, server]
            threading.Thread(target=self._carry, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._carry, args=(server, client, False), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        wait = threading.Event()
        with suppress(OSError):
            while not self._ended:
                if counted and self.most is not None and self.went >= self.most:
                    if source not in self._open:
                        break
                    wait.wait(_LOOK_S)
                    continue
                if not (data := source.recv(1 << 16)):
                    break
                target.sendall(data)
                self.went += len(data) if counted else 0
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
