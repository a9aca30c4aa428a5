"""What the scheduler knows: the fleet, which replicas wait for a place, and each waiting revision's ranking."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weft_contracts.backends import BackendRecipe
from weft_contracts.commit import Recorded
from weft_contracts.engines import BUILTIN, Profiles
from weft_contracts.ids import ReplicaId
from weft_fleet import Fleet
from weft_placement import CandidateRanking, ClaimUnknown, PlannedFleet, Policy
from weft_placement.decide import demand_for
from weft_placement.kept_recipe import recipe_for

from weft_scheduler.domain.waiting import Revision, Waiting

RANKINGS_KEPT = 128
"""How many revisions' rankings are kept; beyond that, the one not looked at for longest is made anew when needed."""


@dataclass(slots=True)
class State:
    """Folded from the log. The rankings are a cache: the same as evaluating every node again."""

    policy: Policy = field(compare=False)
    fleet: Fleet = field(default_factory=Fleet)
    waiting: Waiting = field(default_factory=Waiting)
    _rankings: dict[Revision, CandidateRanking | str] = field(
        default_factory=dict[Revision, CandidateRanking | str], compare=False
    )

    _engines: Profiles = field(default_factory=lambda: BUILTIN, compare=False)
    _recipes: Mapping[str, BackendRecipe] = field(default_factory=dict[str, BackendRecipe], compare=False)
    """By which the rankings were made."""

    def fold(self, commits: Iterable[Recorded]) -> None:
        """Take the next commits of the log, every one of them, in order."""
        for recorded in commits:
            self.fleet.apply(recorded)
            self.waiting.follow(self.fleet, recorded)
        if self.fleet.engines is not self._engines or self.fleet.told_recipes is not self._recipes:
            self._engines, self._recipes = self.fleet.engines, self.fleet.told_recipes
            self._rankings.clear()
            self.waiting.look_anew()

    def on_restored(self) -> None:
        """The memory was filled from a snapshot: all that waits is looked at again."""
        self.waiting.look_anew()

    def ranking(self, revision: Revision, sample: ReplicaId, planned_fleet: PlannedFleet) -> CandidateRanking | str:
        """The revision's ranking in step with the planned fleet, or why its claim can't be computed.

        `sample` is any replica of the revision.
        """
        ranking = self._rankings.pop(revision, None)
        if isinstance(ranking, CandidateRanking) and ranking.demand.recipe != recipe_for(self.fleet, *revision):
            ranking = None  # a recipe was refused since, or is to be tried again
        if ranking is None:
            ranking = self._made(sample)
        self._rankings[revision] = ranking
        if len(self._rankings) > RANKINGS_KEPT:
            del self._rankings[next(iter(self._rankings))]
        if isinstance(ranking, CandidateRanking):
            ranking.sync(planned_fleet)
        return ranking

    def _made(self, sample: ReplicaId) -> CandidateRanking | str:
        try:
            return CandidateRanking(demand_for(self.fleet, self.fleet.replicas[sample], self.policy), self.policy)
        except ClaimUnknown as error:
            return str(error)
