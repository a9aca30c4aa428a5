"""A model: its revisions and how far its replicas are counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from weft_contracts.commit import Cause
from weft_contracts.digest import files_digest
from weft_contracts.facts.model import ModelFact
from weft_contracts.facts.replica import Evicted
from weft_contracts.facts.rollout import RolloutRules
from weft_contracts.facts.sizing import OwnScaling
from weft_contracts.facts.source import FetchedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, ReplicaId

from weft_fleet.changed import changed
from weft_fleet.revision import Revision, is_elastic, is_open, within_bounds

GAVE_WAY_KEPT = 16
"""Models of which one remembers that it gave way to them."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many replicas should serve by what there was to do, as it was decided last."""

    replicas: int
    was: int
    places: int
    """Requests that one replica was seen to run when all were busy."""
    why: str
    at: float
    """Seconds since the epoch."""


@dataclass(frozen=True)
class ModelView:
    """One model, from its first `spec_accepted`.

    A revision is established once all its wanted replicas (`due`), and at least one, were ready at one moment, and
    stays so. Until a newer one is, the last that was is kept: its replicas are repaired and counted.
    """

    id: ModelId
    name: str
    revision: int
    digest: str
    spec: ModelSpec
    """The newest revision's spec."""
    specs: Mapping[int, tuple[str, ModelSpec]]
    """Digest and spec of every revision."""
    files: Mapping[int, str]
    """The `digest.files_digest` of every revision that names files."""
    cause: Cause
    """The cause of its last commit: what its own rules decide next follows from it."""
    sequence: int = 0
    deleted: bool = False
    established: int | None = None
    """The newest revision that was ready with all its replicas."""
    answered: int | None = None
    """While no revision is established: the newest one of which any replica was ready."""
    given_up: Mapping[int, str] = field(default_factory=dict[int, str])
    """Why revisions can't be served, by number, since the last spec or retry. Nothing is tried of them."""
    ran_in: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """By revision: the recipes, by digest, in which replicas of it were ready; "" where what lay there was used."""
    refused: Mapping[int, Mapping[str, str]] = field(default_factory=dict[int, Mapping[str, str]])
    """By revision: why it can't be served in a recipe, by the recipe's digest. It goes on in what it served in."""
    size: Size | None = None
    """What `sized` said last; None: never, or a spec that leaves no choice came since."""
    rules: RolloutRules = field(default_factory=RolloutRules)
    """How its next revisions take the place of the ones before."""
    gave_way: Mapping[ModelId, float] = field(default_factory=dict[ModelId, float])
    """To which models replicas of it made room, and when that was last, in seconds since the epoch; the latest come
    last, at most `GAVE_WAY_KEPT`."""
    told: int | None = None
    """How many of the newest revision there should be, as `scaled` said last; None: it has not said yet."""
    scaling: OwnScaling = field(default_factory=OwnScaling)
    """Figures of its own that it is sized by."""
    next_number: int = 1
    """The number of the next replica that is ever added."""
    replicas: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    """Replicas that are wanted or still hold a claim, oldest first. The fleet changes it in place."""
    ready: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    """Replicas that are ready, the latest last. The fleet changes it in place."""

    def of(self, number: int) -> Revision:
        """A revision by its number. Raises KeyError if the log lacks it."""
        digest, spec = self.specs[number]
        return Revision(number, digest, spec)

    def anti_affinity(self, revision: int) -> str:
        """What no two replicas on a node may share; empty: the revision names none."""
        known = self.specs.get(revision)
        return "" if known is None else known[1].anti_affinity

    def fetched(self, revision: int) -> tuple[str, int]:
        """What names the files that nodes fetch for a revision, and all their bytes; empty and 0: it has none."""
        files, known = self.files.get(revision, ""), self.specs.get(revision)
        if not files or known is None or not isinstance(known[1].source, FetchedSource):
            return "", 0
        return files, sum(file.size for file in known[1].files)

    @property
    def newest(self) -> Revision:
        """What was asked for last."""
        return Revision(self.revision, self.digest, self.spec)

    @property
    def kept(self) -> Revision | None:
        """The revision that is kept until a newer one is established; None where none ever answered."""
        number = self.answered if self.established is None else self.established
        return None if number is None else self.of(number)

    @property
    def current(self) -> Revision:
        """What there should be replicas of in the end: the newest, or, where that was given up, the kept one."""
        newest = self.newest
        return (self.kept or newest) if newest.number in self.given_up else newest

    @property
    def serving(self) -> Revision:
        """What requests are held against: the kept revision, the newest where none ever answered."""
        if self.established == self.revision:
            return self.newest
        kept, newest = self.kept, self.newest
        return newest if kept is None or kept.runs_as(newest) else kept

    @property
    def replacing(self) -> bool:
        """Whether the newest revision has yet to be established in the place of another."""
        kept = self.kept
        return kept is not None and not kept.runs_as(self.newest)

    @property
    def due(self) -> int | None:
        """How many of the newest revision must be ready at one moment for it to be established.

        Of a spread one, and of one that has as many as there is to do for, in the place of another: as many as the
        reconciler counted last (`told`), None until it has. Else its minimum.
        """
        newest = self.newest
        if not is_open(newest.spec) or not self.replacing:
            return newest.least
        return None if self.told is None else max(newest.least, self.told)

    def recipes_of(self, revision: Revision) -> tuple[str, ...]:
        """Digests of the recipes in which a revision, or what runs as it, was ready; the latest comes last."""
        return tuple(
            digest for number, digests in self.ran_in.items() if self.of(number).runs_as(revision) for digest in digests
        )

    def refused_for(self, revision: Revision) -> Mapping[str, str]:
        """Why a revision, or what runs as it, is not served in recipes, by digest."""
        return {
            digest: why
            for number, by_digest in self.refused.items()
            if self.of(number).runs_as(revision)
            for digest, why in by_digest.items()
        }

    def revision_before(self) -> Revision | None:
        """The last revision before the newest that runs otherwise and of which a replica was ready."""
        newest = self.newest
        known = sorted(number for number in self.ran_in if number in self.specs and number < newest.number)
        before = (self.of(number) for number in reversed(known))
        return next((each for each in before if not each.runs_as(newest)), None)

    def on_trial(self, revision: Revision, recipe: str) -> bool:
        """Whether it is the recipe that fails where a replica fails in it: the revision served in others, and in this
        one never."""
        served = self.recipes_of(revision)
        return bool(recipe) and bool(served) and recipe not in served

    @property
    def unservable(self) -> str | None:
        """Why nothing is tried any more until an admin says so; None while something is."""
        return self.given_up.get(self.current.number)

    @property
    def asleep(self) -> bool:
        """Whether all its replicas were let go for want of requests, and none is wanted until there is one."""
        return self.size is not None and not within_bounds(self.current.spec, self.size.replicas)


def evolve_model(id: ModelId, view: ModelView | None, fact: ModelFact, cause: Cause) -> ModelView | None:
    """The model after one of its facts. Nothing before `spec_accepted` makes a model."""
    if fact.type == "spec_accepted":
        of_fact = {fact.revision: (fact.digest, fact.spec)}
        files = {fact.revision: files_digest(fact.spec)} if fact.spec.files else {}
        if view is None:
            return ModelView(id, fact.name, fact.revision, fact.digest, fact.spec, of_fact, files, cause)
        return changed(
            view,
            name=fact.name,
            revision=fact.revision,
            digest=fact.digest,
            spec=fact.spec,
            specs={**view.specs, **of_fact},
            files={**view.files, **files},
            deleted=False,
            given_up={},
            size=view.size if is_elastic(fact.spec) else None,
            told=view.told if view.newest.runs_as(Revision(fact.revision, fact.digest, fact.spec)) else None,
            cause=cause,
        )
    if view is None:
        return None
    match fact.type:
        case "scaled":
            numbers = [number_of(replica) + 1 for replica in fact.add]
            told = view.told if fact.wanted is None or fact.revision != view.revision else fact.wanted
            return changed(view, next_number=max([view.next_number, *numbers]), told=told, cause=cause)
        case "sized":
            size = Size(fact.replicas, fact.was, fact.places, fact.why, fact.receipt.decided_at)
            return changed(view, size=size, cause=cause)
        case "unservable" if fact.recipe:
            why = {**view.refused.get(fact.revision, {}), fact.recipe: fact.reason}
            known = fact.revision in view.specs
            return changed(view, refused={**view.refused, fact.revision: why} if known else view.refused, cause=cause)
        case "unservable":
            return changed(view, given_up={**view.given_up, fact.revision: fact.reason}, cause=cause)
        case "rollout_set":
            return changed(view, rules=fact.rules, cause=cause)
        case "scaling_set":
            return changed(view, scaling=fact.own, cause=cause)
        case "rolled_back" | "gave_way":  # what it changes is said by the facts beside it
            return changed(view, cause=cause)
        case "retried":
            return changed(view, given_up={}, refused={}, cause=cause)
        case "deleted":
            return changed(view, deleted=True, cause=cause)
        case "unloaded":  # which replicas go is said by the `scaled` that follows
            return changed(view, size=_without(view.size, len(fact.replicas)), cause=cause)
        case _:
            assert_never(fact)


def after_giving_way(view: ModelView, fact: Evicted, left: int, at: float) -> ModelView:
    """The model after one of its replicas was ended for another model's. `left`: of its replicas those that are still
    wanted. No other is added in its place: what there is to do says when there are to be more."""
    kept = {id: when for id, when in view.gave_way.items() if id != fact.model}
    gave_way = dict(list({**kept, fact.model: at}.items())[-GAVE_WAY_KEPT:])
    size = view.size
    if is_elastic(view.current.spec):
        places = view.current.spec.concurrency if size is None else size.places
        size = Size(left, left + 1, places, fact.why, at)
    return changed(view, gave_way=gave_way, size=size)


def _without(size: Size | None, replicas: int) -> Size | None:
    """An admin took some off: only a minimum asks for others in their place."""
    if size is None:
        return None
    left = max(0, size.replicas - replicas)
    return Size(left, size.replicas, size.places, "an admin took it off a node", size.at)


def after_readiness(view: ModelView, ready: Sequence[int]) -> ModelView:
    """The model while replicas of these revisions are ready at once, each named by its revision's number."""
    newest = view.newest
    if newest.number in view.given_up:
        return view
    due = view.due
    enough = due is not None and len(ready) >= due
    if not enough and (view.established is not None or view.answered == newest.number):
        return view
    known = [number for number in ready if number in view.specs]
    as_newest = {number for number in set(known) if view.of(number).runs_as(newest)}
    if due is not None and sum(number in as_newest for number in known) >= due:
        return changed(view, established=newest.number, answered=None)
    if view.established is not None or not known:
        return view
    answered = newest.number if as_newest else max(known)
    return changed(view, answered=max(answered, view.answered or 0))


def after_ready_in(view: ModelView, number: int, recipe: str) -> ModelView:
    """The model once a replica of a revision was ready in a recipe."""
    there = view.ran_in.get(number, ())
    if number not in view.specs or recipe in there:
        return view
    return changed(view, ran_in={**view.ran_in, number: (*there, recipe)})


def number_of(replica: ReplicaId) -> int:
    """The number in a replica's id `<model>-<n>`. Raises ValueError if there is none."""
    return int(replica.rpartition("-")[2])
