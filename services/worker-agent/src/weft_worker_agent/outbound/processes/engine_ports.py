"""Which port the next engine listens on, where a firewall wants them to be known."""

import socket
from collections.abc import Collection

RANGE = 1000
"""So many ports from the first on: far more than a node runs engines."""


class NoPort(OSError):
    """Every port of the range is taken."""


def next_port(host: str, first: int, taken: Collection[int]) -> int:
    """The lowest free port from `first` on that is not in `taken`; 0 where `first` is 0: the system chooses.

    Another program may take it before the engine does; then that start fails, and the next one asks again.
    """
    if not first:
        return 0
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = min(first + RANGE, 65536)
    for port in range(first, last):
        if port in taken:
            continue
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise NoPort(f"none of the ports {first} to {last - 1} is free on {host}: set WEFT_GRPC_PORT to another first one")
