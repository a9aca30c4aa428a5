"""How long an engine may load: longer for larger weights, longer while it gets on, never for ever."""

from dataclasses import dataclass

from weft_worker_agent.domain.hosts import Host

GIB = 1 << 30
STEP_BYTES = 1 << 20
"""What a loading process reads or takes of memory counts as progress from so much on."""


@dataclass(frozen=True, slots=True)
class LoadBounds:
    """In seconds."""

    base_s: float = 300.0
    per_gib_s: float = 20.0
    """What is right for a small model kills a large one."""
    most_s: float = 7200.0
    """For a load that gets on, however large its weights are."""

    @property
    def still_s(self) -> float:
        """How long a load that is past its deadline may stand still."""
        return self.base_s / 5

    def deadline_s(self, weight_bytes: int) -> float:
        """From its start until a host should be ready."""
        return min(self.base_s + self.per_gib_s * weight_bytes / GIB, self.most_s)


@dataclass(frozen=True, slots=True)
class Progress:
    """What a loading host has taken in, in bytes, and when that last grew (the agent's monotonic seconds)."""

    taken: int
    grew_at: float


def seen(progress: Progress | None, taken: int, now: float) -> Progress:
    """The progress after one more look. The first look is a measure, not progress."""
    if progress is None:
        return Progress(taken, float("-inf"))
    return Progress(taken, now) if taken >= progress.taken + STEP_BYTES else progress


def overdue(host: Host, weight_bytes: int, bounds: LoadBounds, now: float) -> str | None:
    """Why a load must be given up; None while it may go on."""
    if host.prepares:
        return None
    deadline = bounds.deadline_s(weight_bytes)
    passed = now - host.started_at
    if passed < deadline:
        return None
    if passed < bounds.most_s and now < host.grew_at + bounds.still_s:
        return None
    return f"the engine was not ready within {passed:.0f} s of its start (its deadline was {deadline:.0f} s)"
