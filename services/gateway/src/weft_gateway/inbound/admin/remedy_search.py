"""What would have to change for a replica to have a place, searched in turns beside all else that the gateway does."""

import asyncio
from typing import TypedDict

from weft_api import Remedy
from weft_placement.remedies import Question, searched

from weft_gateway.domain.explanations import remedy_shape
from weft_gateway.inbound.admin.turns import in_turns

FITS = "it has a place now"
ANOTHER = "another search is under way; ask again"


class Remedied(TypedDict, total=False):
    """What an explanation says of it."""

    remedies: list[Remedy]
    remedies_note: str


class RemedySearch:
    """One search at a time: it is bounded, and at 1,000 nodes it takes a good part of a second of turns."""

    def __init__(self) -> None:
        self._searching = asyncio.Lock()

    async def of(self, question: Question) -> Remedied:
        """The smallest sets of changes. Who asks while another search is under way is told so, and waits for nobody."""
        if self._searching.locked():
            return {"remedies_note": ANOTHER}
        async with self._searching:
            found = await in_turns(searched(question))
        if found.fits:
            return {"remedies": [], "remedies_note": FITS}
        shapes = [remedy_shape(each) for each in found.found]
        if not found.unseen:
            return {"remedies": shapes}
        left = f"{found.unseen} further nodes that refuse for the same reasons weren't looked at"
        return {"remedies": shapes, "remedies_note": left}
