"""The bounds of an inference request."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, unless a name says otherwise."""

    loading_wait: float = 60.0
    """How long a request waits for a model that loads."""
    loading_line: int = 1024
    """Requests that wait for one model that loads at once."""
    busy_wait: float = 10.0
    """How long it waits while every replica is busy."""
    busy_queue: int = 256
    """Requests that wait for one model's busy replicas at once."""
    resume_wait: float = 10.0
    """How long a broken stream waits for another replica to go on with it."""
    stall: float = 300.0
    """A request without an output for so long is given up."""
    tries: int = 3
    """Replicas that a request is tried on before its first byte."""
