"""A stall: an engine that has work and makes no step, or a host that says nothing. Busy is not dead.

A long prompt's prefill is one step of many seconds, so time in which the host's processes compute counts less: a
stall is short where nothing computes, and long where something does, but never endless.
"""

from dataclasses import dataclass, replace

SILENT_FROM_S = 3.0
"""A host says something every second."""
COMPUTES_FROM = 0.05
"""Of one processor: an idle host's own beats take a fifth of that."""
LOOK_FROM_S = 3.0
"""Without a step, before its processes are looked at: one that works steps many times in it, and costs no look."""
MOVE_S = 2.0
"""From the word that it stalls until it is ended: what runs there may be sent elsewhere first."""


@dataclass(frozen=True, slots=True)
class StallBounds:
    """In seconds."""

    still_s: float = 30.0
    """Without a step or a word, while nothing computes."""
    longest_s: float = 600.0
    """The same while it computes."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """An engine's steps, and for how long they have stood still, in seconds that the agent itself was awake."""

    steps: int = 0
    busy: bool = False
    """Requests run or wait there."""
    silent_s: float = 0.0
    """Since its last word."""
    still_s: float = 0.0
    """Since the last sign that it works, while it had work or said nothing."""
    idle_s: float = 0.0
    """The part of `still_s` in which nothing computed."""

    @property
    def in_doubt(self) -> bool:
        """Whether it should be doing something and shows nothing of it."""
        return self.busy or self.silent_s >= SILENT_FROM_S


def heard(pulse: Pulse, *, busy: bool, steps: int) -> Pulse:
    """The pulse after a word of the host about its load."""
    if busy and pulse.busy and steps == pulse.steps:
        return replace(pulse, silent_s=0.0)
    return Pulse(steps, busy)


def passed(pulse: Pulse, seconds: float, *, computes: bool) -> Pulse:
    """The pulse after so much time. `computes`: whether the host's processes did in it."""
    pulse = replace(pulse, silent_s=pulse.silent_s + seconds)
    if not pulse.in_doubt:
        return pulse
    idle_s = pulse.idle_s if computes else pulse.idle_s + seconds
    return replace(pulse, still_s=pulse.still_s + seconds, idle_s=idle_s)


def stall_of(pulse: Pulse, bounds: StallBounds) -> str:
    """Why it counts as stalled, as a sentence; empty while it doesn't."""
    if pulse.idle_s < bounds.still_s and pulse.still_s < bounds.longest_s:
        return ""
    if pulse.silent_s >= SILENT_FROM_S:
        return f"its host said nothing for {pulse.silent_s:.0f} s"
    return f"requests ran for {pulse.still_s:.0f} s without a step of the engine"
