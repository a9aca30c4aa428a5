"""What the mesh lacks that is the scheduler's to give: one round of decisions."""

from collections.abc import Mapping

from weft_contracts.commit import Decision
from weft_contracts.subjects import Aggregate
from weft_placement import Circumstances

from weft_scheduler.domain.place import place
from weft_scheduler.domain.retire import retire
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State

_NO_SUSPECTS: Mapping[Aggregate, str] = {}


def decide(
    state: State, rules: Rules, now: float, seed: int, suspects: Mapping[Aggregate, str] = _NO_SUSPECTS
) -> list[Decision]:
    """At most three batches that touch no aggregate twice: retired, placed, unplaceable.

    Fold what came of them before the next call. `now` is seconds since the epoch; nothing is decided
    about `suspects`.
    """
    leaving = retire(state.fleet, rules, suspects, now)
    retired = leaving.decision("retired")
    given = Circumstances(rules.policy, now, seed)
    placed = place(state, rules, given, suspects, leaving.nodes)
    return placed if retired is None else [retired, *placed]
