"""Which revision of a model is established, kept, served and given up, as its replicas become ready."""

from typing import Any

import pytest
from weft_contracts.backends import BackendVariant
from weft_contracts.facts.mesh import BackendUpgraded
from weft_contracts.facts.model import Deleted, Retried, Scaled, SpecAccepted, Unloaded, Unservable
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Ready, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, ReplicaId, replica_id
from weft_contracts.subjects import MESH, model, node, replica, run
from weft_fleet import ModelView, Revision
from weft_fleet.backend_upgrade import RECIPES_KEPT
from weft_fleet.model_view import after_readiness, number_of
from weft_testing.fleet_log import FleetLog

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
ID = ModelId("m-toy")
RECEIPT = Receipt(
    position=0, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0.0, refusals={}, candidates=()
)


class Toy:
    """A model, and a node that all of its replicas go to."""

    def __init__(self) -> None:
        self.log = FleetLog()
        self.node = self.log.node("a", 1 << 40)

    @property
    def view(self) -> ModelView:
        return self.log.fleet.models[ID]

    def revision(self, replicas: int = 1, digest: str = "", **spec: object) -> None:
        """The next revision, with so many new replicas; of its own digest, unless one is given."""
        self.log.model("toy", SPEC.model_copy(update=spec), replicas=replicas, digest=digest)

    def ready(self, number: int, backend: BackendVariant | None = None) -> None:
        """The replica of this number is placed, to run in `backend`, and answers."""
        id = replica_id(ID, number)
        view = self.log.fleet.replicas[id]
        members = (Member(node=self.node, rank=0, devices=(DeviceClaim(index=0, bytes=1),)),)
        of = {"model": ID, "revision": view.revision, "epoch": 1, "members": members}
        told = {**of, "replica": id, "model_name": "toy", "digest": view.digest, "spec": SPEC, "backend": backend}
        self.log.add(node(self.node), Assigned.model_validate(told))
        self.log.add(replica(id), Placed.model_validate({**of, "receipt": RECEIPT}))
        fact = Ready(epoch=1, incarnation=Incarnation("i"), port=1, engine="simulated", engine_version="1")
        self.log.add(run(self.node, id), fact)

    def ends(self, number: int) -> None:
        """The replica of this number answers no longer."""
        self.log.add(run(self.node, replica_id(ID, number)), Stopped(epoch=1, why="exited"))

    def give_up(self, revision: int, reason: str) -> None:
        self.log.add(model(ID), Unservable(revision=revision, reason=reason))

    def numbers(self) -> tuple[int | None, int, int, bool]:
        """The kept revision, what there should be in the end, what is served, whether one replaces another."""
        view = self.view
        return view.kept.number if view.kept else None, view.current.number, view.serving.number, view.replacing


@pytest.fixture
def toy() -> Toy:
    return Toy()


def test_a_revision_is_established_once_its_minimum_is_ready_and_stays_so(toy: Toy) -> None:
    # given
    toy.revision(replicas=2, min_replicas=2)
    assert (None, 1, 1, False) == toy.numbers()
    # when one of two is ready
    toy.ready(1)
    # then it is kept, as the only one that ever answered
    assert (None, 1) == (toy.view.established, toy.view.answered)
    assert (1, 1, 1, False) == toy.numbers()
    # when both are
    toy.ready(2)
    assert (1, None) == (toy.view.established, toy.view.answered)
    # when both end
    toy.ends(1)
    toy.ends(2)
    assert (1, None) == (toy.view.established, toy.view.answered)
    assert {} == toy.view.ready


def test_replicas_that_were_ready_one_after_the_other_establish_nothing(toy: Toy) -> None:
    toy.revision(replicas=2, min_replicas=2)
    toy.ready(1)
    toy.ends(1)
    toy.ready(2)
    assert (None, 1) == (toy.view.established, toy.view.answered)


def test_a_model_that_may_have_no_replica_is_established_by_one(toy: Toy) -> None:
    toy.revision(min_replicas=0)
    assert toy.view.established is None
    toy.ready(1)
    assert 1 == toy.view.established


def test_the_old_revision_is_kept_and_serves_until_the_new_one_is_established(toy: Toy) -> None:
    # given
    toy.revision(replicas=2, min_replicas=2)
    toy.ready(1)
    toy.ready(2)
    # when
    toy.revision(replicas=2, min_replicas=2, concurrency=7)
    assert (1, 2, 1, True) == toy.numbers()
    # then the replicas of the old one don't count for the new one
    toy.ready(3)
    assert (1, 2, 1, True) == toy.numbers()
    toy.ready(4)
    assert (2, 2, 2, False) == toy.numbers()


def test_a_revision_of_other_numbers_alone_is_served_by_the_replicas_that_there_are(toy: Toy) -> None:
    toy.revision(digest="same")
    toy.ready(1)
    toy.revision(replicas=0, digest="same", max_replicas=5)
    assert (2, 2, 2, False) == toy.numbers()
    # when it wants more than there are
    toy.revision(replicas=0, digest="same", min_replicas=2, max_replicas=5)
    assert (2, 3, 3, False) == toy.numbers()
    assert 2 == toy.view.established
    # then the ones that it lacks establish it
    toy.log.scale(ID, 1)
    toy.ready(2)
    assert 3 == toy.view.established


@pytest.mark.parametrize(
    ("number", "digest", "selector", "same"),
    [
        (1, "d", {"zone": "1"}, True),
        (1, "x", {}, True),
        (2, "d", {"zone": "1"}, True),
        (2, "x", {"zone": "1"}, False),
        (2, "d", {"zone": "2"}, False),
    ],
)
def test_a_replica_is_as_good_as_one_of_another_revision_where_digest_and_selector_are_the_same(
    number: int, digest: str, selector: dict[str, str], same: bool
) -> None:
    one = Revision(1, "d", SPEC.model_copy(update={"selector": {"zone": "1"}}))
    other = Revision(number, digest, SPEC.model_copy(update={"selector": selector}))
    assert same is one.runs_as(other)


def test_a_revision_that_is_given_up_leaves_the_kept_one_to_be_repaired(toy: Toy) -> None:
    # given
    toy.revision()
    toy.ready(1)
    toy.revision(concurrency=7)
    # when
    toy.give_up(2, "no such argument")
    # then
    assert (1, 1, 1, True) == toy.numbers()
    assert toy.view.unservable is None
    # when the kept one is given up too
    toy.give_up(1, "the file is gone")
    assert {2: "no such argument", 1: "the file is gone"} == toy.view.given_up
    assert "the file is gone" == toy.view.unservable


def test_without_another_to_keep_a_revision_that_is_given_up_can_not_be_served_until_it_is_tried_again(
    toy: Toy,
) -> None:
    toy.revision()
    toy.give_up(1, "no GGUF file")
    assert (None, 1, 1, False) == toy.numbers()
    assert "no GGUF file" == toy.view.unservable
    toy.log.add(model(ID), Retried())
    assert toy.view.unservable is None
    # when it is given up again, and another is wanted
    toy.give_up(1, "no GGUF file")
    toy.revision(concurrency=7)
    assert (None, {}) == (toy.view.unservable, toy.view.given_up)


def test_what_is_given_up_is_not_established_by_replicas_that_are_ready_until_it_is_tried_again(toy: Toy) -> None:
    toy.revision()
    toy.give_up(1, "too slow")
    toy.ready(1)
    assert (None, None) == (toy.view.established, toy.view.answered)
    toy.log.add(model(ID), Retried())
    assert 1 == toy.view.established


def test_where_none_is_established_the_newest_that_ever_answered_is_kept(toy: Toy) -> None:
    # given three revisions of which each wants two
    for concurrency in (1, 2, 3):
        toy.revision(min_replicas=2, concurrency=concurrency)
    # then
    toy.ready(1)
    assert (1, 3, 1, True) == toy.numbers()
    toy.ready(2)
    assert (2, 3, 2, True) == toy.numbers()
    # when the second ends and the first comes again, it is not fallen behind
    toy.ends(2)
    toy.ends(1)
    fact = Ready(epoch=1, incarnation=Incarnation("i"), port=1, engine="simulated", engine_version="1")
    toy.log.add(run(toy.node, replica_id(ID, 1)), fact)
    assert (2, 3, 2, True) == toy.numbers()
    toy.ready(3)
    assert (3, 3, 3, False) == toy.numbers()
    assert toy.view.established is None


def test_an_answer_of_a_replica_that_is_as_good_counts_for_the_newest(toy: Toy) -> None:
    toy.revision(digest="same", min_replicas=2)
    toy.revision(replicas=0, digest="same", min_replicas=3)
    toy.ready(1)
    assert (None, 2) == (toy.view.established, toy.view.answered)


def test_a_revision_that_the_log_lacks_counts_for_nothing(toy: Toy) -> None:
    toy.revision()
    view = toy.view
    assert view is after_readiness(view, [99])
    assert 1 == after_readiness(view, [99, 1]).established


def test_numbers_of_replicas_never_go_back(toy: Toy) -> None:
    toy.revision(replicas=0)
    assert 1 == toy.view.next_number
    toy.log.add(model(ID), Scaled(revision=1, add=(replica_id(ID, 7),), why="wanted"))
    assert 8 == toy.view.next_number
    toy.log.add(model(ID), Scaled(revision=1, add=(replica_id(ID, 3),), why="wanted"))
    assert 8 == toy.view.next_number


def test_a_replicas_number_is_what_its_id_ends_with() -> None:
    assert 12 == number_of(ReplicaId("m-a-1-12"))
    with pytest.raises(ValueError, match="invalid literal"):
        number_of(ReplicaId("m-toy"))


def test_nothing_makes_a_model_before_its_first_spec() -> None:
    log = FleetLog()
    for fact in (Deleted(), Retried(), Unservable(revision=1, reason="no"), Scaled(revision=1, why="wanted")):
        log.add(model(ID), fact)
    assert {} == log.fleet.models


def test_a_deleted_model_comes_back_with_its_next_spec_and_keeps_its_history(toy: Toy) -> None:
    toy.revision()
    toy.log.add(model(ID), Deleted())
    assert toy.view.deleted
    assert not toy.log.fleet.replicas[replica_id(ID, 1)].wanted
    toy.log.add(model(ID), SpecAccepted(name="doll", revision=2, digest="e", spec=SPEC))
    view = toy.view
    assert (False, "doll", 2, "e") == (view.deleted, view.name, view.revision, view.digest)
    assert [1, 2] == list(view.specs)


def test_what_a_model_decides_next_follows_from_its_last_commit(toy: Toy) -> None:
    toy.revision(replicas=0)
    facts = (
        SpecAccepted(name="toy", revision=2, digest="e", spec=SPEC),
        Scaled(revision=2, add=(replica_id(ID, 1),), why="wanted"),
        Unservable(revision=2, reason="no"),
        Retried(),
        Unloaded(node=toy.node, replicas=(), deadline_s=1),
        Deleted(),
    )
    for fact in facts:
        recorded = toy.log.add(model(ID), fact)
        assert (recorded.cause, recorded.sequence) == (toy.view.cause, toy.view.sequence), fact.type


def test_a_model_that_takes_another_name_leaves_the_old_one_free() -> None:
    log = FleetLog()
    log.model("toy", SPEC)
    log.add(model(ID), SpecAccepted(name="doll", revision=2, digest="e", spec=SPEC))
    assert log.fleet.model_named("toy") is None
    found = log.fleet.model_named("doll")
    assert found is not None
    assert ID == found.id


def test_a_name_that_went_to_another_model_stays_with_it() -> None:
    log = FleetLog()
    log.model("toy", SPEC)
    other = ModelId("m-other")
    log.add(model(other), SpecAccepted(name="toy", revision=1, digest="e", spec=SPEC))
    log.add(model(ID), Deleted())
    found = log.fleet.model_named("toy")
    assert found is not None
    assert other == found.id


ONE = BackendVariant(vendor="cpu", package="simulated", version="1", requirements=("simulated==1",), disk=1)
TWO = ONE.model_copy(update={"version": "2"})


def refused(toy: Toy, revision: int = 1) -> None:
    toy.log.add(model(ID), Unservable(revision=revision, reason="it crashed", recipe=TWO.digest))


def test_a_recipe_is_on_trial_until_a_revision_that_served_in_others_serves_in_it(toy: Toy) -> None:
    toy.revision(replicas=2)
    assert not toy.view.on_trial(toy.view.newest, ONE.digest)

    toy.ready(1, ONE)

    assert [False, True, False] == [toy.view.on_trial(toy.view.newest, each) for each in (ONE.digest, TWO.digest, "")]
    toy.ready(2, TWO)
    assert not toy.view.on_trial(toy.view.newest, TWO.digest)
    assert (ONE.digest, TWO.digest) == toy.view.recipes_of(toy.view.newest)
    assert {ONE.digest: ONE, TWO.digest: TWO} == toy.log.fleet.used_recipes


def test_a_refused_recipe_gives_no_revision_up_and_is_one_of_all_that_run_as_it(toy: Toy) -> None:
    toy.revision(digest="d")
    toy.ready(1, ONE)
    refused(toy)
    assert {} == toy.view.given_up
    assert {TWO.digest: "it crashed"} == toy.view.refused_for(toy.view.newest)
    # when the next differs in numbers alone
    toy.revision(digest="d", min_replicas=2)
    assert {TWO.digest: "it crashed"} == toy.view.refused_for(toy.view.newest)
    assert toy.view.on_trial(toy.view.newest, TWO.digest)
    # when it is another
    toy.revision(concurrency=3)
    assert {} == toy.view.refused_for(toy.view.newest)


@pytest.mark.parametrize(("engine", "lifted"), [("simulated", True), ("llama.cpp", False)])
def test_an_upgrade_of_its_engine_lifts_what_was_refused(toy: Toy, engine: str, *, lifted: bool) -> None:
    toy.revision()
    toy.ready(1, ONE)
    refused(toy)

    toy.log.add(MESH, BackendUpgraded(engine=engine, superseded=(ONE.digest,)))

    assert lifted == (not toy.view.refused)


def test_a_retry_lifts_what_was_refused(toy: Toy) -> None:
    toy.revision()
    toy.ready(1, ONE)
    refused(toy)

    toy.log.add(model(ID), Retried())

    assert {} == toy.view.refused


def test_what_is_said_of_a_revision_that_the_log_lacks_is_not_kept(toy: Toy) -> None:
    toy.revision()

    refused(toy, revision=7)

    assert {} == toy.view.refused


def test_of_recipes_that_assignments_named_the_latest_are_kept(toy: Toy) -> None:
    toy.revision(replicas=RECIPES_KEPT + 1)
    for number in range(RECIPES_KEPT + 1):
        toy.ready(number + 1, ONE.model_copy(update={"version": f"1.{number}"}))

    kept = [each.version for each in toy.log.fleet.used_recipes.values()]

    assert [f"1.{number}" for number in range(1, RECIPES_KEPT + 1)] == kept


# how many make one that leaves its number open

OPEN = [{"min_replicas": 1, "max_replicas": 4}, {"spread_all": True}]


def told(toy: Toy, wanted: int | None, *, revision: int | None = None) -> None:
    """So many there are to be of a revision, the newest one unless it is named."""
    toy.log.add(model(ID), Scaled(revision=revision or toy.view.revision, wanted=wanted, why="counted"))


@pytest.fixture(params=OPEN, ids=["sized", "spread"])
def replacing(request: pytest.FixtureRequest, toy: Toy) -> Toy:
    """Revision 2, which leaves its number open, replaces revision 1; it has three replicas, and none is ready."""
    toy.revision(**request.param)
    toy.ready(1)
    assert 1 == toy.view.established, "where none is replaced its minimum is enough"
    toy.revision(replicas=3, concurrency=7, **request.param)
    assert (1, 2, 1, True) == toy.numbers()
    return toy


def test_one_that_leaves_its_number_open_replaces_another_once_as_many_as_were_counted_are_ready(
    replacing: Toy,
) -> None:
    told(replacing, 2)

    replacing.ready(2)
    assert (1, 2, 1, True) == replacing.numbers()
    replacing.ready(3)

    assert (2, 2, 2, False) == replacing.numbers()
    # and it stays so, however many more are due
    told(replacing, 9)
    replacing.ends(2)
    assert (2, 2, 2, False) == replacing.numbers()


def test_it_replaces_none_until_somebody_counted(replacing: Toy) -> None:
    replacing.ready(2)
    told(replacing, None)
    told(replacing, 1, revision=1)
    assert (1, 2, 1, True) == replacing.numbers()

    told(replacing, 1)

    assert (2, 2, 2, False) == replacing.numbers()


def test_it_replaces_another_when_no_more_are_due_than_are_ready_already(replacing: Toy) -> None:
    told(replacing, 3)
    replacing.ready(2)
    assert (1, 2, 1, True) == replacing.numbers()

    told(replacing, 1)

    assert 2 == replacing.view.established


def test_none_is_replaced_by_nothing(replacing: Toy) -> None:
    told(replacing, 0)
    assert (1, 2, 1, True) == replacing.numbers()

    replacing.ready(2)

    assert 2 == replacing.view.established


def test_what_was_counted_holds_for_the_next_that_runs_as_it_and_for_no_other(replacing: Toy) -> None:
    told(replacing, 2)
    replacing.ready(2)
    spec, digest = replacing.view.spec, replacing.view.digest

    replacing.revision(0, digest, concurrency=7, priority=3, **_numbers(spec))
    assert (1, 3, 1, True) == replacing.numbers()
    replacing.revision(0, "other", concurrency=9, **_numbers(spec))
    replacing.revision(0, digest, concurrency=7, **_numbers(spec))

    assert replacing.view.told is None
    assert (1, 5, 1, True) == replacing.numbers(), "one that is ready of it was as many as there were to be"


def _numbers(spec: ModelSpec) -> dict[str, Any]:
    return {"min_replicas": spec.min_replicas, "max_replicas": spec.max_replicas, "spread_all": spec.spread_all}
