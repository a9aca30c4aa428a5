"""Other nodes that have a model's files, or to which they come: where a gateway says that they are asked for."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from weft_contracts import certificates
from weft_contracts.ids import NodeId
from weft_files.address import Address
from weft_files.checksum import Checksum
from weft_files.resolver import NodeTrust
from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused
from weft_worker_agent.outbound.mesh.signed_words import SignedHeaders, words_for

WITHIN_S: Final = 8.0
"""A gateway that has said nothing by then is away, and the source is asked as if there were no other node."""
FOLDING_S: Final = (0.1, 0.3, 0.6, 1.5)
"""Pauses in which a gateway may fold the assignment that this node knows already."""
MOST: Final = 16
_LONGEST_S: Final = 3600.0
_log: Any = get_logger("weft.fetches")


@dataclass(frozen=True, slots=True)
class Peer:
    """A node that may be asked."""

    node: NodeId
    name: str
    host: str
    port: int
    whole: bool
    """Whether it has the files, by the log; else they are on their way to it, and it hands on what comes unverified."""

    @property
    def certificate(self) -> str:
        """The name that its certificate must show."""
        return certificates.server_name(certificates.node_role(self.node))


@dataclass(frozen=True, slots=True)
class Row:
    """Whom to ask, best first. Seconds: without a byte from any of them, after which the source may be asked; after
    which to look anew."""

    peers: tuple[Peer, ...]
    source_after_s: float
    again_after_s: float


class Peers:
    """Of one agent. A row is a gateway's word; what comes by it is verified as from anywhere."""

    def __init__(self, gateway: Gateway, context: Callable[[], ssl.SSLContext] | None) -> None:
        """`context`: TLS by the mesh's own authority, with this node's certificate; None: the mesh speaks plainly."""
        self._gateway = gateway
        self._scheme = "http" if context is None else "https"
        self.trust = NodeTrust(context) if context is not None else None
        self._words: dict[tuple[str, NodeId], SignedHeaders] = {}

    async def row(self, files: str) -> Row | None:
        """Who is asked for these files; None where no gateway says it in time."""
        try:
            async with asyncio.timeout(WITHIN_S):
                return _row_of(await self._asked(files))
        except (Refused, NotNow) as error:
            why = str(error)
        except TimeoutError:
            why = f"no answer within {WITHIN_S:g} s"
        except (ValueError, KeyError, TypeError):
            why = "the gateway's answer names no nodes"
        _log.info("no nodes are asked for files", files=files, why=why)
        return None

    async def _asked(self, files: str) -> Any:
        for pause in FOLDING_S:
            try:
                return await self._gateway.files_near(files)
            except Refused as refused:
                if refused.status != 403:
                    raise
            await asyncio.sleep(pause)
        return await self._gateway.files_near(files)

    def address(self, peer: Peer, files: str, checksum: Checksum) -> Address:
        """Where a peer gives a file of these. Its certificate must name the node, by whatever host it is reached."""
        host = f"[{peer.host}]" if ":" in peer.host else peer.host
        return Address(
            f"{self._scheme}://{host}:{peer.port}/files/{files}/{checksum}",
            self._headers(files, peer.node),
            node=peer.certificate,
            said=peer.name,
        )

    def _headers(self, files: str, holder: NodeId) -> SignedHeaders:
        key = files, holder
        found = self._words.get(key)
        if found is None:
            found = self._words[key] = SignedHeaders(lambda: self._gateway.signed(words_for(files, holder)))
            if len(self._words) > 256:
                del self._words[next(iter(self._words))]
        return found


def _row_of(answer: Any) -> Row:
    """Raises ValueError, KeyError, TypeError for what is none."""
    listed = cast("list[dict[str, Any]]", answer["peers"])[:MOST]
    peers = tuple(
        Peer(NodeId(str(p["node"])), str(p["name"])[:63], str(p["host"]), int(p["port"]), p["whole"] is True)
        for p in listed
    )
    source, again = (min(max(float(answer[name]), 0.0), _LONGEST_S) for name in ("source_after_s", "again_after_s"))
    return Row(peers, source, max(again, 1.0))
