"""`/api/replicas`."""

from fastapi import APIRouter
from weft_api import ReplicaPage

from weft_gateway.inbound.admin.listing import Cursor, Limit, Source, Word, page
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.openapi_document import PROBLEMS


class Replicas:
    """Listing replicas."""

    def __init__(self, lists: Source) -> None:
        self._lists = lists
        self.router = APIRouter(tags=["replicas"], responses=PROBLEMS)
        answering(self.router)("/api/replicas", self.list, "GET")

    async def list(
        self,
        after: Cursor = None,
        limit: Limit = 100,
        state: Word = None,
        model: Word = None,
        node: Word = None,
    ) -> Answer[ReplicaPage]:
        """A page of replicas, by id. `model` and `node` are ids."""
        return await page(self._lists, lambda lists: lists.replicas(after, limit, state, model, node), limit)
