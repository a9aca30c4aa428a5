"""`/api/node/files/near`, `…/reader`, `…/going`: whom a node asks for the files that it needs, who may be given them,
and whether a copy may go.

All are decided from the folded log, in memory: a node needs files for an assignment that stands, or because it was
wished that it has them.
"""

import time
from collections.abc import Callable
from typing import Final

import msgspec
from fastapi import APIRouter, Request
from weft_api import FilesGoing, FilesNear, FilesReader, NearNode
from weft_contracts.ids import NodeId
from weft_fleet import NodeView
from weft_fleet.files_needed import files_held, files_needed
from weft_fleet.last_copies import last_copies

from weft_gateway.domain.node_bodies import FilesGoingBody, FilesNearBody, FilesReaderBody
from weft_gateway.domain.rate_limiter import too_often
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.spreading import AGAIN_S, near
from weft_gateway.domain.token_buckets import TokenBuckets
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.openapi_document import PROBLEMS, node_route_document
from weft_gateway.inbound.nodes.signatures import signing_node
from weft_gateway.inbound.nodes.untrusted_body import count_failure, read_body
from weft_gateway.projections.directory import Directory

AT_ONCE: Final = 20
"""So many questions a node may ask at once, on all routes together."""
EVERY_S: Final = 0.2
"""And one more every so many seconds."""
GOOD_S: Final = 60.0
"""So long a yes may be kept."""
_NEAR = msgspec.json.Decoder(FilesNearBody)
_GOING = msgspec.json.Decoder(FilesGoingBody)
_READER = msgspec.json.Decoder(FilesReaderBody)


class NodeFiles:
    """The routes. They tell a node nothing of files that no assignment and no wish of its names, and a node may ask
    so often."""

    def __init__(
        self,
        directory: Directory,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._now = now
        self._monotonic = monotonic
        self._asked = TokenBuckets(AT_ONCE, EVERY_S)
        self.router = APIRouter(tags=["joining"], responses=PROBLEMS)
        add = answering(self.router)
        add("/api/node/files/near", self.near, "POST", openapi_extra=node_route_document(FilesNearBody))
        add("/api/node/files/going", self.going, "POST", openapi_extra=node_route_document(FilesGoingBody))
        add("/api/node/files/reader", self.reader, "POST", openapi_extra=node_route_document(FilesReaderBody))

    async def near(self, request: Request) -> Answer[FilesNear]:
        """Who has the files that the node needs, or gets them before it, best first; 403 where it needs none such."""
        body = await read_body(request, _NEAR)
        what = f"files-near:{body.files}"
        node = signing_node(self._directory, body, what, lambda: count_failure(request), self._now())
        self._check_may_ask(node)
        fleet = self._directory.fleet
        needs = files_needed(fleet, body.files)
        self._check_needs(node, body.files, node.id in needs)
        holders = [id for id in files_held(fleet, body.files) if self._serves(id)]
        waiting = [
            id
            for id, need in needs.items()
            if id not in holders and (id == node.id or (not need.rests and self._serves(id)))
        ]
        found = near(holders, waiting, node.id)
        peers = [self._shape(fleet.nodes[id], whole=id in holders) for id in found.peers]
        return Answer(
            {"peers": peers, "source_after_s": found.source_after_s, "again_after_s": AGAIN_S},
            cache_control="no-store",
        )

    async def going(self, request: Request) -> Answer[FilesGoing]:
        """Whether the node may have files go that nothing there needs: not where its copy of what was sent is the one
        that stays."""
        body = await read_body(request, _GOING)
        what = f"files-going:{body.files}"
        node = signing_node(self._directory, body, what, lambda: count_failure(request), self._now())
        self._check_may_ask(node)
        kept = last_copies(self._directory.fleet, body.files)
        may_go = kept is None or not kept.stays(node)
        return Answer({"may_go": may_go}, cache_control="no-store")

    async def reader(self, request: Request) -> Answer[FilesReader]:
        """Whether another node may be given files by the one that asks; 403 where it may not, with the reason."""
        body = await read_body(request, _READER)
        now, files = self._now(), body.files
        what = f"files-reader:{files}"
        holder = signing_node(self._directory, body, what, lambda: count_failure(request), now)
        self._check_may_ask(holder)
        try:  # what it relays is not its own fault, and is answered as the reader's
            reader = signing_node(self._directory, body.reader, f"files:{files}:{holder.id}", lambda: None, now)
        except Refused as refused:
            raise Refused(403, f"The reader's words: {refused.sentence}", code="reader_refused") from None
        _check_admitted(reader)
        needed = reader.id in files_needed(self._directory.fleet, files)
        self._check_needs(reader, files, needed)
        return Answer({"reader": reader.id, "files": files, "good_for_s": GOOD_S}, cache_control="no-store")

    def _check_may_ask(self, node: NodeView) -> None:
        """Raises Refused: 403, 423, and 429 for a node that asks too often. Nothing is looked up before."""
        _check_admitted(node)
        now = self._monotonic()
        if wait := self._asked.wait(node.id, now):
            raise too_often(wait)
        self._asked.spend(node.id, now)

    def _check_needs(self, node: NodeView, files: str, needed: bool) -> None:
        if not needed:
            why = "nothing that it is to run has them, and nobody wished it to fetch them"
            sentence = f"Node {node.name!r} needs no files {files}: {why}."
            raise Refused(403, sentence, code="files_not_assigned")

    def _serves(self, id: NodeId) -> bool:
        """Whether its server can be expected to answer."""
        node = self._directory.fleet.nodes.get(id)
        if node is None or node.removed or node.cut_off is not None or node.drained:
            return False
        return node.approved and node.presence == "healthy" and node.addresses.http_port > 0

    def _shape(self, node: NodeView, *, whole: bool) -> NearNode:
        return {
            "node": node.id,
            "name": node.name,
            "host": node.addresses.host,
            "port": node.addresses.http_port,
            "whole": whole,
        }


def _check_admitted(node: NodeView) -> None:
    """Raises Refused."""
    if node.cut_off is not None:
        raise Refused(423, f"Node {node.name!r} is cut off: {node.cut_off}.", code="node_cut_off")
    if not node.approved:
        raise Refused(403, f"Node {node.name!r} is not approved.", code="node_not_approved")
