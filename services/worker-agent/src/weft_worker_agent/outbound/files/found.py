"""What a look at files found."""

from dataclasses import dataclass
from pathlib import Path

from weft_contracts.facts.values import Weights

from weft_worker_agent.outbound.files.metadata import Offer


@dataclass(frozen=True, slots=True)
class Found:
    """A model that this node has. `path` is what the engine loads; None where there is nothing to load."""

    path: Path | None
    size: int
    weights: Weights
    offers: tuple[Offer, ...]
    tokenizer: str = ""
    """The kind of vocabulary that its own header holds; empty: none, or its tokenizer's files ship with it."""

    def another_than(self, accepted: Weights) -> str | None:
        """A sentence if these are not the files that a revision was accepted with."""
        own = self.weights.fingerprint
        if not own or not accepted.fingerprint or own == accepted.fingerprint:
            return None
        return f"{self.path} has changed since it was deployed: deploy it again"


class NotFound(Exception):
    """No usable model; the message is a sentence for people."""
