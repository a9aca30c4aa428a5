"""What the scheduler knows: the fleet, which replicas wait for a place, and each waiting revision's ranking."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weft_contracts.backends import BackendRecipe
from weft_contracts.commit import Recorded
from weft_contracts.engines import BUILTIN, Profiles
from weft_contracts.ids import ReplicaId
from weft_contracts.policies import PlacementPolicy
from weft_fleet import Fleet
from weft_placement import CandidateRanking, ClaimUnknown, PlannedFleet, chosen_policy
from weft_placement.decide import demand_for
from weft_placement.eviction import AskedOf
from weft_placement.kept_recipe import recipe_for
from weft_placement.node_index import NodeIndex

from weft_scheduler.domain.waiting import Revision, Waiting

RANKINGS_KEPT = 128
"""How many revisions' rankings are kept; beyond that, the one not looked at for longest is made anew when needed."""


@dataclass(slots=True)
class State:
    """Folded from the log. The rankings are a cache: the same as evaluating every node again."""

    fleet: Fleet = field(default_factory=Fleet)
    waiting: Waiting = field(default_factory=Waiting)
    _rankings: dict[Revision, CandidateRanking | str] = field(
        default_factory=dict[Revision, CandidateRanking | str], compare=False
    )

    index: NodeIndex = field(default_factory=NodeIndex, compare=False)
    """Of the fleet's nodes: a cache, too."""
    in_vain: dict[Revision, dict[tuple[str, ...], AskedOf]] = field(
        default_factory=dict[Revision, dict[tuple[str, ...], AskedOf]], compare=False
    )
    """Of which nobody's end helped when it was looked for last, by the revision and the nodes that are avoided: what
    was asked, which needn't be asked again."""
    _engines: Profiles = field(default_factory=lambda: BUILTIN, compare=False)
    _recipes: Mapping[str, BackendRecipe] = field(default_factory=dict[str, BackendRecipe], compare=False)
    _policies: tuple[Mapping[str, PlacementPolicy], str] = field(
        default_factory=lambda: (dict[str, PlacementPolicy](), ""), compare=False
    )
    _formats: Mapping[str, int] = field(default_factory=dict[str, int], compare=False)
    """By which the rankings were made."""

    def fold(self, commits: Iterable[Recorded]) -> None:
        """Take the next commits of the log, every one of them, in order."""
        for recorded in commits:
            self.fleet.apply(recorded)
            self.waiting.follow(self.fleet, recorded)
        fleet = self.fleet
        engines, recipes, policies = fleet.engines, fleet.told_recipes, (fleet.policies, fleet.policy)
        same = policies[0] is self._policies[0] and policies[1] == self._policies[1] and fleet.formats == self._formats
        if engines is not self._engines or recipes is not self._recipes or not same:
            self._engines, self._recipes, self._policies = engines, recipes, policies
            self._formats = fleet.formats
            self._rankings.clear()
            self.in_vain.clear()
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
            replica = self.fleet.replicas[sample]
            policy = chosen_policy(self.fleet, self.fleet.spec_of(replica)[1])
            return CandidateRanking(demand_for(self.fleet, replica, policy), policy)
        except ClaimUnknown as error:
            return str(error)
