"""What the mesh lacks that is the scheduler's to give: one round of decisions."""

from collections.abc import Callable, Mapping

from weft_contracts.commit import Decision
from weft_contracts.facts.eviction import ModelUse
from weft_contracts.ids import ModelId
from weft_contracts.subjects import Aggregate
from weft_placement import Circumstances

from weft_scheduler.domain.place import place
from weft_scheduler.domain.restart_groups import restart_groups
from weft_scheduler.domain.retire import retire
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State

_NO_SUSPECTS: Mapping[Aggregate, str] = {}


def unknown(model: ModelId) -> ModelUse:
    """A model's use where nobody listens to gateways."""
    return ModelUse(model=model)


def decide(
    state: State,
    rules: Rules,
    now: float,
    seed: int,
    suspects: Mapping[Aggregate, str] = _NO_SUSPECTS,
    use: Callable[[ModelId], ModelUse] = unknown,
) -> list[Decision]:
    """At most three batches that touch no aggregate twice: retired, restarted, and placed, evicted or unplaceable.

    Fold what came of them before the next call. `now` is seconds since the epoch; nothing is decided
    about `suspects`. `use`: what is known of a model's last use.
    """
    leaving = retire(state.fleet, rules, suspects, now)
    retired = leaving.decision("retired")
    broken = restart_groups(state.fleet, rules, suspects, leaving.nodes)
    restarted = broken.decision("restarted")
    given = Circumstances(now, seed)
    placed = place(state, rules, given, suspects, (*leaving.nodes, *broken.nodes), use)
    return [each for each in (retired, restarted, *placed) if each is not None]
