"""How many replicas there should be by what there is to do: three rules, the first that says something holds."""

from dataclasses import dataclass
from math import ceil

from weft_contracts.facts.sizing import DemandSeen, ScalingPolicy

from weft_reconciler.domain.situation import Situation


@dataclass(frozen=True, slots=True)
class Resize:
    """Another size, and why as a sentence."""

    replicas: int
    places: int
    """Requests that one replica was seen to run when all were busy."""
    why: str


def resize(at: Situation, seen: DemandSeen, policy: ScalingPolicy) -> Resize | None:
    """The size that there should be now; None: the one that there is.

    Of a constant demand it gets nowhere that it would leave again: what is all busy with n is more than `spare`
    allows for n + 1 to become n.
    """
    return _woken(at, seen) or _more(at, seen, policy) or _fewer(at, seen, policy)


def _woken(at: Situation, seen: DemandSeen) -> Resize | None:
    """A request waits for a model that has none."""
    if not seen.asked or at.size:
        return None
    return Resize(at.bounded(1), at.places, "a request waits for it")


def _more(at: Situation, seen: DemandSeen, policy: ScalingPolicy) -> Resize | None:
    """All that serve are busy, and none is on its way: as many as would have room for all, at most twice as many."""
    if not at.size or at.coming or seen.busy_s < policy.up_after_s or at.resting_s < policy.up_cooldown_s:
        return None
    if seen.ready is not None and at.ready > seen.ready:
        return None  # what was seen to wait hasn't met the new one yet
    full = at_capacity(seen.tokens_per_s, max(at.size, at.ready), policy)
    if not seen.waiting and not full and fits(seen.wanted, at.size, at.proven, policy):
        return None  # what lacks is ready replicas, not more of them
    needed = max(at.size + 1, ceil(seen.wanted / at.places))
    replicas = at.bounded(min(needed, 2 * at.size))
    if replicas <= at.size:
        return None
    lined = f", {seen.waiting} more waited" if seen.waiting else ""
    busy = f"{seen.running} requests ran at {at.ready} with {at.places} places each{lined}"
    if full:
        busy += f"; {seen.tokens_per_s:.0f} tokens a second, where each makes {policy.tokens_per_s:g}"
    ran = max(seen.running, seen.most_running)
    runs = max(1, min(at.places, ran // at.ready)) if seen.waiting and at.ready else at.places
    return Resize(replicas, runs, f"all were busy for {seen.busy_s:.0f} s: {busy}")


def _fewer(at: Situation, seen: DemandSeen, policy: ScalingPolicy) -> Resize | None:
    """Nothing to do, or so little that one fewer has places to spare; both for long, and known all the while."""
    if not seen.known or at.braked or at.size <= at.least or at.resting_s < policy.down_cooldown_s:
        return None
    idle, spare = seen.idle_s, seen.spare_s
    if at.grew:
        idle, spare = min(idle, at.resting_s), min(spare, at.resting_s)
    if idle >= policy.down_after_s:
        return Resize(at.size - 1, at.proven, f"nothing ran or waited for {idle:.0f} s")
    room = spares_tokens(seen.tokens_per_s, at.size - 1, policy)
    if spare >= policy.down_after_s and room and fits(seen.wanted, at.size - 1, at.proven, policy):
        left = (at.size - 1) * at.proven
        return Resize(at.size - 1, at.proven, f"{seen.wanted} requests leave room in {left} places for {spare:.0f} s")
    return None


def is_busy(running: int, waiting: int, ready: int, places: int) -> bool:
    """Whether all that serve have as much as they can do."""
    return ready > 0 and (waiting > 0 or running >= ready * places)


def fits(wanted: int, replicas: int, places: int, policy: ScalingPolicy) -> bool:
    """Whether so many replicas have room for so many requests, with some to spare. None has room for nothing."""
    return replicas > 0 and wanted <= (1 - policy.spare) * places * replicas


def at_capacity(tokens_per_s: float | None, replicas: int, policy: ScalingPolicy) -> bool:
    """Whether so many replicas make about as many tokens a second as they can. What isn't known or told isn't."""
    most = policy.token_share * policy.tokens_per_s * replicas
    return most > 0 and tokens_per_s is not None and tokens_per_s >= most


def spares_tokens(tokens_per_s: float | None, replicas: int, policy: ScalingPolicy) -> bool:
    """Whether so many replicas would make so many tokens a second with some to spare; of what goes by tokens, one that
    isn't known is too many."""
    if not policy.tokens_per_s:
        return True
    most = (1 - policy.spare) * policy.token_share * policy.tokens_per_s * replicas
    return tokens_per_s is not None and tokens_per_s <= most
