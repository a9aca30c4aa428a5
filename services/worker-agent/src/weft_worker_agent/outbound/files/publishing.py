"""What a run publishes of its model's small files: those beside it, and those that stand in a GGUF file's header."""

from weft_worker_agent.outbound.files.found import Found
from weft_worker_agent.outbound.files.gguf_slots import GgufSlots
from weft_worker_agent.outbound.files.metadata import MOST_BYTES, Offer


class Publishing:
    """By a worker's settings."""

    def __init__(self, slots: GgufSlots | None = None, *, self_host: bool = True, most_bytes: int = MOST_BYTES) -> None:
        """`slots`: None: nothing is made of headers. `most_bytes`: of one file; a larger one is not published."""
        self._slots = slots
        self.self_host = self_host
        self._most_bytes = most_bytes

    async def offers(self, found: Found) -> tuple[Offer, ...]:
        """What is made of the model's own header goes before files that lie beside it.

        What a node doesn't offer itself must lie at the model's source: then nothing is made of a header.
        """
        by_name = {offer.file.name: offer for offer in found.offers}
        if not self.self_host:
            by_name = {name: offer for name, offer in by_name.items() if not isinstance(offer.content, bytes)}
        elif found.tokenizer and found.path is not None and self._slots is not None:
            by_name |= {offer.file.name: offer for offer in await self._slots.offers(found.path)}
        return tuple(offer for offer in by_name.values() if offer.file.size <= self._most_bytes)
