"""Peers on slow links: what comes of a piece counts, however long the piece takes."""

import threading
from collections.abc import Sequence
from pathlib import Path
from socket import socket

from weft_contracts.ids import NodeId
from weft_files import Address, Reach, Resolver, Store
from weft_testing.origin import Request, head, serving
from weft_testing.wanted_files import content, wanted
from weft_worker_agent.outbound.files.near_files import NearFiles
from weft_worker_agent.outbound.files.peers import Peer, Peers, Row
from weft_worker_agent.outbound.mesh.gateway import Gateway
from weft_worker_agent.outbound.mesh.identity import load_or_make

BODY = content(40_000)
"""Far less than a piece, and than what a transfer reads at a time."""
PARTS = 5


class OnePeer(Peers):
    """A gateway names one node, and a look anew is due after 30 s without a byte."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Gateway("http://gateway", load_or_make(folder)), None)
        self.looks = 0

    async def row(self, files: str) -> Row | None:
        self.looks += 1
        return Row((Peer(NodeId("n-a"), "a", "127.0.0.1", self.port, True),), 60.0, 30.0)

    port = 0


class Heard(NearFiles):
    """Tells when it heard of bytes."""

    def __init__(self, peers: Peers, now: Sequence[float]) -> None:
        super().__init__(peers, "0" * 16, lambda: now[0])
        self.heard = threading.Event()

    def moved(self) -> None:
        super().moved()
        self.heard.set()


async def test_a_peer_that_gives_a_piece_slowly_is_not_given_up_while_bytes_come(tmp_path: Path) -> None:
    now = [0.0]
    peers = OnePeer(tmp_path)
    near = Heard(peers, now)

    def slowly(taken: socket, request: Request) -> None:
        taken.sendall(head(200, content_length=len(BODY)))
        for part in range(PARTS):
            near.heard.clear()
            taken.sendall(BODY[part * 8_000 : (part + 1) * 8_000])
            if part:  # the first comes with the head
                near.heard.wait(1.0)
                now[0] += 20.0

    async def nowhere() -> tuple[Address, ...]:
        return ()

    resolver = Resolver(Store(tmp_path / "store", keep_free=0), Reach())
    try:
        # given a peer that gives a fifth of a file every 20 s, by the clock that the fetch looks at
        with serving(slowly) as origin:
            peers.port = origin.port
            blob = await near.fetch(resolver, wanted(BODY), nowhere, lambda _: None)
            # then it is asked once, and nothing of it comes twice
            assert BODY == blob.path.read_bytes()
            assert (1, 1) == (peers.looks, len(origin.asked))
    finally:
        resolver.close()
