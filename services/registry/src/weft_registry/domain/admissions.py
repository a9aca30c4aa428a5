"""What registrations of one round are held against: the limits, and who was let in since the state was folded."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft_contracts.commit import Decision
from weft_contracts.facts.node import Approved, Joined
from weft_contracts.ids import TokenId
from weft_fleet import JoinLimits

from weft_registry.domain.state import RegistryState


@dataclass(frozen=True, slots=True)
class Admissions:
    """The limits of a round, and what the round has decided so far."""

    limits: JoinLimits = field(default=JoinLimits())
    bounds: Mapping[TokenId, int] = field(default_factory=dict[TokenId, int])
    """So many nodes a token approves; one that isn't named: all."""
    waiting: Counter[TokenId] = field(default_factory=Counter[TokenId])
    """Nodes let in to wait for approval."""
    approved: Counter[TokenId] = field(default_factory=Counter[TokenId])

    def approves(self, state: RegistryState, id: TokenId) -> bool:
        """Whether a token approves one node more. A node that was removed has left its place to another."""
        if not state.tokens.by_id[id].approves:
            return False
        most = self.bounds.get(id)
        return most is None or len(state.approvals.get(id, ())) + self.approved[id] < most

    def note(self, decision: Decision) -> None:
        """Count a registration that is about to be taken; other decisions count nothing."""
        facts = decision.commits[0].facts if decision.commits else ()
        by = next((TokenId(fact.by) for fact in facts if isinstance(fact, Approved)), None)
        if by is not None:
            self.approved[by] += 1
        elif facts and isinstance(facts[0], Joined):
            self.waiting[facts[0].token] += 1


NOBODY_YET = Admissions()
"""With the limits that hold where nothing else is said."""
