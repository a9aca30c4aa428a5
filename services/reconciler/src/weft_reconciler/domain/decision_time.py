"""The time at which a decision is made, and what bounds its waits."""

from dataclasses import dataclass

_GAP = 10.0
"""Seconds without a look after which deciding counts as started anew."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long is waited for what, in seconds."""

    deploy_wait: float = 10.0
    """For a healthy node to take a deploy, and for what nodes find."""
    source_wait: float = 30.0
    """For what nodes find at a source that they fetch from: a hub, a web server, a bucket."""
    return_grace: float = 30.0
    """For a node that went offline before this decider looked."""
    failure_memory: float = 3600.0
    """How long a failure on a node counts: engines that crash once a month are replaced for ever, those that
    crash everywhere within the hour are given up."""


@dataclass(frozen=True, slots=True)
class DecisionTime:
    """The time of one decision, in seconds since the epoch."""

    now: float
    since: float
    """From when on this decider has looked without a gap."""
    timeouts: Timeouts = Timeouts()
    seed: int = 0
    """What chance is drawn from."""

    def waited(self, at: float) -> float:
        """Seconds since `at`, counting only those in which this decider looked."""
        return self.now - max(at, self.since)


@dataclass(slots=True)
class DecisionClock:
    """Since when decisions are made without a gap. A decider looks about once a second."""

    timeouts: Timeouts = Timeouts()
    since: float = 0.0
    _last: float | None = None

    def tick(self, now: float, seed: int = 0) -> DecisionTime:
        """Note a look at `now` (seconds since the epoch)."""
        if self._last is None or not 0 <= now - self._last <= _GAP:
            self.since = now
        self._last = now
        return DecisionTime(now, self.since, self.timeouts, seed)
