"""`/api/requests`: requests for change and their outcomes."""

from fastapi import APIRouter
from weft_api import ChangeRequest, ChangeRequestPage
from weft_contracts.ids import RequestId, is_id

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.shapes import request_shape
from weft_gateway.inbound.admin.listing import Limit, Place, Source, Word, page
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.outbound.changes import Changes
from weft_gateway.projections.requests import Requests


class RequestsForChange:
    """Listing and looking at requests."""

    def __init__(self, requests: Requests, changes: Changes, lists: Source) -> None:
        self._requests = requests
        self._changes = changes
        self._lists = lists
        self.router = APIRouter(tags=["requests"], responses=PROBLEMS)
        add = answering(self.router)
        add("/api/requests", self.list, "GET")
        add("/api/requests/{id}", self.get, "GET")

    async def list(self, before: Place = None, limit: Limit = 100, state: Word = None) -> Answer[ChangeRequestPage]:
        """A page of requests, the newest first; `before` is the `number` that the last page ended with."""
        return await page(self._lists, lambda lists: lists.requests(before, limit, state), limit, "number")

    async def get(self, id: str) -> Answer[ChangeRequest]:
        """One request with its outcome, from memory or from the log."""
        view = self._requests.get(RequestId(id))
        if view is None and is_id(id):
            view = await self._changes.look_up(RequestId(id))
        if view is None:
            raise Refused(404, f"Request {id[:64]!r} does not exist.", code="request_not_found")
        return Answer(request_shape(view))
