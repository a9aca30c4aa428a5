"""`/api/replicas`."""

from typing import Any

from fastapi import APIRouter

from weft_gateway.inbound.admin.documented import PROBLEMS
from weft_gateway.inbound.admin.listing import Cursor, Limit, Source, Word, page


class Replicas:
    """Listing replicas."""

    def __init__(self, lists: Source) -> None:
        self._lists = lists
        self.router = APIRouter(tags=["replicas"], responses=PROBLEMS)
        self.router.add_api_route("/api/replicas", self.list, methods=["GET"])

    async def list(
        self,
        after: Cursor = None,
        limit: Limit = 100,
        state: Word = None,
        model: Word = None,
        node: Word = None,
    ) -> dict[str, Any]:
        """A page of replicas, by id. `model` and `node` are ids."""
        return await page(self._lists, lambda lists: lists.replicas(after, limit, state, model, node), limit)
