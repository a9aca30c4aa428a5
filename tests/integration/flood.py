"""A flood: one credential, several bare sockets, each as fast as the server reads."""

import base64
import json
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from weft_identity.nkey import KeyPair

_CHUNK = 1 << 16


def flood(
    credential: Mapping[str, Any], key: KeyPair, subject: str, body: bytes, connections: int, most_s: float
) -> int:
    """Publish until the server ends it, `most_s` seconds at most; how many messages it was given."""
    message = b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(body), body)
    each = max(1, _CHUNK // len(message))
    until = time.monotonic() + most_s
    sent = [0] * connections

    def pour(number: int) -> None:
        try:
            with _connected(credential, key) as link:
                while time.monotonic() < until:
                    link.sendall(message * each)
                    sent[number] += each
        except OSError:  # ended by the server
            return

    threads = [threading.Thread(target=pour, args=(number,), daemon=True) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(most_s + 10)
    return sum(sent)


def _connected(credential: Mapping[str, Any], key: KeyPair) -> socket.socket:
    """Raises OSError where the server lets nobody in."""
    address = urlsplit(str(credential["nats_url"]))
    link = socket.create_connection((address.hostname or "", address.port or 0), 10)
    with link.makefile("rb") as said:
        nonce = json.loads(said.readline().removeprefix(b"INFO "))["nonce"]
        signature = base64.urlsafe_b64encode(key.sign(nonce.encode())).decode().rstrip("=")
        shown = {"jwt": credential["jwt"], "sig": signature, "verbose": False, "pedantic": False, "protocol": 1}
        link.sendall(b"CONNECT " + json.dumps(shown).encode() + b"\r\nPING\r\n")
        if not said.readline().startswith(b"PONG"):
            raise OSError("not let in")
    return link
