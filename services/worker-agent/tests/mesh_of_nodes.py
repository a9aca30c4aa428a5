"""Nodes of one mesh that give one another files: real stores, servers and certificates, and the log in the hand."""

import asyncio
import base64
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from weft_contracts.certificates import node_role
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import NodeId
from weft_files import Bounds
from weft_identity import nkey
from weft_identity.authority import Authority
from weft_sources.content_bucket import ContentBucket
from weft_sources.settings import SourceSettings
from weft_worker_agent.inbound.file_server import FileServer
from weft_worker_agent.inbound.node_server import caller_roles, node_server
from weft_worker_agent.outbound.files.node_files import NodeFiles
from weft_worker_agent.outbound.files.peers import Peers
from weft_worker_agent.outbound.files.source_secrets import SourceSecrets
from weft_worker_agent.outbound.mesh.certificate import NodeCertificate
from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused
from weft_worker_agent.outbound.mesh.identity import NodeIdentity, load_or_make
from weft_worker_agent.outbound.mesh.readers import Readers
from weft_worker_agent.outbound.mesh.signed_words import Words

PIECES = Bounds(
    piece=1 << 16, parallel_from=1 << 18, buffer=1 << 14, tries=2, pause=0.01, most_pause=0.02, look=0.02, silence=5.0
)
"""Small, so that little files show what large ones do."""


@dataclass
class Mesh:
    """What its gateway answers. A node that is in `needs` may read, and asks those that `rows` names for it."""

    settings: SourceSettings
    folder: Path
    authority: Authority | None = None
    needs: set[NodeId] = field(default_factory=set[NodeId])
    rows: dict[NodeId, list["Node"]] = field(default_factory=dict[NodeId, list["Node"]])
    source_after_s: float = 60.0
    again_after_s: float = 30.0
    away: bool = False
    names: dict[NodeId, NodeIdentity] = field(default_factory=dict[NodeId, NodeIdentity])
    asked: list[str] = field(default_factory=list[str])
    bucket: ContentBucket | None = None
    """The mesh's own store."""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def node(self, name: str, **more: Any) -> "Node":
        """One that runs, needs the files, and asks nobody but the source for them."""
        state = self.folder / name
        state.mkdir()
        identity = load_or_make(state)
        self.names[identity.node] = identity
        self.needs.add(identity.node)
        self.rows[identity.node] = []
        return await self.stack.enter_async_context(_running(self, name, state, identity, **more))

    def answer(self, path: str, body: dict[str, Any]) -> Any:
        """As a gateway would. Raises Refused, NotNow."""
        self.asked.append(path)
        if self.away:
            raise NotNow("nobody there")
        files, asking = body["files"], NodeId(body["node"])
        what = path.rpartition("/")[2]
        assert self._is_signed(body, f"files-{what}:{files}")
        if what == "near":
            peers = [
                {"node": each.identity.node, "name": each.name, "port": each.port, "host": "127.0.0.1"}
                | {"whole": files in each.files.fetches.there}
                for each in self.rows[asking]
            ]
            after = self.source_after_s if peers else 0
            return {"peers": peers, "source_after_s": after, "again_after_s": self.again_after_s}
        reader = body["reader"]
        if not self._is_signed(reader, f"files:{files}:{asking}") or reader["node"] not in self.needs:
            raise Refused(403, f"{reader['node']} needs no such files")
        return {"good_for_s": 60.0}

    def _is_signed(self, words: dict[str, Any], what: str) -> bool:
        key = self.names[NodeId(words["node"])].public_key
        signed = f"weft-{what}:{words['node']}:{words['nonce']}".encode()
        return nkey.signed_by(key, signed, base64.b64decode(words["signature"]))


class HandGateway(Gateway):
    """A node's way to the gateway that a mesh in the hand is."""

    def __init__(self, mesh: Mesh, identity: NodeIdentity) -> None:
        super().__init__("http://gateway", identity)
        object.__setattr__(self, "mesh", mesh)

    async def _asked(self, path: str, body: dict[str, Any]) -> Any:
        mesh: Mesh = self.__dict__["mesh"]
        return mesh.answer(path, body)


@dataclass
class Node:
    """One of them."""

    name: str
    identity: NodeIdentity
    certificate: NodeCertificate | None
    gateway: Gateway
    files: NodeFiles
    port: int
    signed: dict[tuple[str, NodeId], dict[str, str]] = field(default_factory=dict[tuple[str, NodeId], dict[str, str]])

    def words(self, files: str, holder: "Node") -> dict[str, str]:
        """The headers with which it reads another's files: signed once, as a node's requests are for a while."""
        key = files, holder.identity.node
        if key not in self.signed:
            signed = self.gateway.signed(f"files:{files}:{holder.identity.node}")
            found = Words(NodeId(signed["node"]), signed["nonce"], signed["signature"]).body()
            self.signed[key] = {f"weft-{name}": value for name, value in found.items()}
        return self.signed[key]

    def runs(self, *specs: ModelSpec) -> None:
        """It was given these to run."""
        self.files.offered.expected = lambda: specs


@asynccontextmanager
async def _running(
    mesh: Mesh,
    name: str,
    state: Path,
    identity: NodeIdentity,
    *,
    most: int = 8,
    most_bytes: int = 1 << 20,
    wait_s: float = 5.0,
) -> AsyncGenerator[Node]:
    certificate = NodeCertificate(state) if mesh.authority is not None else None
    if mesh.authority is not None and certificate is not None:
        mesh.authority.lay_out(certificate.folder, node_role(identity.node))
    gateway = HandGateway(mesh, identity)
    peers = Peers(gateway, certificate.clients() if certificate is not None else None)
    files = NodeFiles(
        state / "files",
        SourceSecrets(mesh.settings),
        at_once=2,
        most_bytes=None,
        changed=lambda: None,
        peers=peers,
        bounds=PIECES,
        bucket=mesh.bucket,
    )
    roles = caller_roles(certificate)
    served = FileServer(files.offered, Readers(gateway), roles=roles, most=most, most_bytes=most_bytes, wait_s=wait_s)
    listener = socket.create_server(("127.0.0.1", 0))
    server = node_server(Starlette(routes=[served.route]), "127.0.0.1", certificate)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        async with asyncio.timeout(10):
            while not server.started:
                await asyncio.sleep(0.01)
        yield Node(name, identity, certificate, gateway, files, listener.getsockname()[1])
    finally:
        server.should_exit = server.force_exit = True
        with suppress(asyncio.CancelledError):
            await task
        await files.close()
