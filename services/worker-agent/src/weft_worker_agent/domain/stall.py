"""A stall: requests run while the engine's step counter stands still. Busy is not dead, standing still is."""

from dataclasses import dataclass, replace

STALL_S = 30.0
"""A long prompt's prefill is one step of many seconds on a slow processor."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """An engine's steps as last seen to move. Times are the agent's monotonic seconds."""

    steps: int
    moved_at: float
    running: int = 0


def felt(pulse: Pulse | None, *, running: int, steps: int, now: float) -> Pulse:
    """The pulse after one more look at the engine's load."""
    if pulse is None or steps != pulse.steps or running == 0 or pulse.running == 0:
        return Pulse(steps, now, running)
    return replace(pulse, running=running)


def stalled(pulse: Pulse | None, now: float, bound_s: float = STALL_S) -> bool:
    """Whether requests have run for so long without a step."""
    return pulse is not None and pulse.running > 0 and now - pulse.moved_at >= bound_s
