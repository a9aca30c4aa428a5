"""A replica as this gateway sees it now: its target and what the gateway itself knows of its load."""

from dataclasses import dataclass

from weft_gateway.domain.target import Target


@dataclass(slots=True, eq=False)
class Lane:
    """Live state of one target; it ends with the target."""

    target: Target
    in_flight: int = 0
    """This gateway's own requests there."""
    engine_load: int = 0
    """Running and waiting requests of all gateways, from the last frame."""
    last_used: float = 0.0
    """Monotonic seconds; 0: never."""
    shunned: str | None = None
    """Why this gateway does not use it now; None: it does."""

    @property
    def load(self) -> int:
        """The larger of what we know and what the engine said."""
        return max(self.in_flight, self.engine_load)
