"""How a model stands, and what can be hoped for while no replica of it answers."""

from weft_contracts.facts.eviction import UsesRead
from weft_contracts.facts.model import Deleted, Sized, Unservable
from weft_contracts.facts.node import Approved, Assigned, Expired, Joined, Removed
from weft_contracts.facts.replica import Evicted, KeptForNow, Placed, Unplaceable
from weft_contracts.facts.run import Failed, Loading, Ready, RunFact, Stopped
from weft_contracts.facts.sizing import DemandSeen, ScalingPolicy, SizingReceipt
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId, TokenId
from weft_contracts.subjects import model, node, replica, run
from weft_gateway.domain.mesh_health import problems_of
from weft_gateway.domain.model_state import Failing, ModelStanding, standing
from weft_gateway.domain.unavailability import Unavailability, why_unavailable
from weft_testing.fleet_log import FleetLog

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
ID, REPLICA = ModelId("m-toy"), ReplicaId("m-toy-1")
RECEIPT = Receipt(
    position=1, policy="", policy_digest="", seed=0, trigger="", decided_at=0.0, refusals={}, candidates=()
)
FIRST, SECOND = Incarnation("i-1"), Incarnation("i-2")
DIED = "the engine's process ended by signal 9"


class Toy:
    """A model of one replica, and a node for it."""

    def __init__(self) -> None:
        self.log = FleetLog()
        self.node: NodeId = self.log.node("a", 1 << 30)
        self.log.model("toy", SPEC, replicas=1)

    def place(self, id: ReplicaId = REPLICA) -> None:
        members = (Member(node=self.node, rank=0, devices=(DeviceClaim(index=0, bytes=1),)),)
        view = self.log.fleet.replicas[id]
        placed = Placed(model=ID, revision=view.revision, epoch=1, members=members, receipt=RECEIPT)
        self.log.add(replica(id), placed)
        assigned = Assigned(
            replica=id,
            model=ID,
            model_name="toy",
            revision=view.revision,
            digest=view.digest,
            epoch=1,
            members=members,
            spec=SPEC,
        )
        self.log.add(node(self.node), assigned)

    def say(self, *facts: RunFact, of: ReplicaId = REPLICA) -> None:
        for fact in facts:
            self.log.add(run(self.node, of), fact)

    def ready(self, of: ReplicaId = REPLICA) -> None:
        self.say(Loading(epoch=1, incarnation=FIRST), of=of)
        self.say(Ready(epoch=1, incarnation=FIRST, port=1, engine="simulated", engine_version="1"), of=of)

    def revision(self, **spec: object) -> None:
        """Another one, with one replica, the newest of all."""
        self.log.model("toy", SPEC.model_copy(update=spec), replicas=1)

    def whole(self) -> ModelStanding:
        return standing(self.log.fleet.models[ID], list(self.log.fleet.replicas.values()))

    def stands(self) -> tuple[str, str | None]:
        found = self.whole()
        return found.state, found.reason

    def hope(self) -> Unavailability:
        fleet = self.log.fleet
        return why_unavailable(fleet.models[ID], fleet.replicas.values(), fleet.nodes.values(), fleet.rooms)


def test_a_replica_without_a_place_is_placed_then_loads_then_answers() -> None:
    toy = Toy()
    assert ("placing", None) == toy.stands()
    toy.place()
    assert ("loading", None) == toy.stands()
    toy.say(Loading(epoch=1, incarnation=FIRST))
    assert ("loading", None) == toy.stands()
    toy.say(Ready(epoch=1, incarnation=FIRST, port=1, engine="simulated", engine_version="1"))
    assert ("ready", None) == toy.stands()


def test_what_is_waited_for_is_named_with_its_node_and_phase() -> None:
    toy = Toy()
    assert Unavailability(True, "Model 'toy' is not ready: replica m-toy-1 is added.") == toy.hope()
    toy.place()
    toy.say(Loading(epoch=1, incarnation=FIRST))
    assert Unavailability(True, "Model 'toy' is not ready: replica m-toy-1 on node a is loading.") == toy.hope()


def test_a_start_after_a_failed_one_says_what_failed_until_it_answers() -> None:
    toy = Toy()
    toy.place()
    toy.say(Loading(epoch=1, incarnation=FIRST), Stopped(epoch=1, why="exited", detail=DIED))
    assert ("loading", f"it starts again after: {DIED}") == toy.stands()
    toy.say(Loading(epoch=1, incarnation=SECOND))
    assert ("loading", f"it starts again after: {DIED}") == toy.stands()
    assert toy.hope().sentence.endswith(f"on node a is loading, it starts again after: {DIED}.")
    toy.say(Ready(epoch=1, incarnation=SECOND, port=1, engine="simulated", engine_version="1"))
    assert ("ready", None) == toy.stands()


def test_a_mesh_that_was_stopped_in_order_and_starts_again_has_no_trouble_to_tell() -> None:
    toy = Toy()
    toy.place()
    toy.say(Loading(epoch=1, incarnation=FIRST), Stopped(epoch=1, why="shutdown"))
    toy.say(Loading(epoch=1, incarnation=SECOND))
    assert ("loading", None) == toy.stands()


def test_what_can_not_be_served_or_placed_is_not_waited_for() -> None:
    toy = Toy()
    toy.log.add(replica(REPLICA), Unplaceable(model=ID, revision=1, reason="no room", receipt=RECEIPT))
    assert ("unplaceable", "no room") == toy.stands()
    assert Unavailability(False, "Model 'toy' has no place: no room", permanent=True) == toy.hope()
    toy.place()
    toy.say(Failed(epoch=1, reason="no GGUF file", permanent=True, starts=1))
    assert ("loading", "no GGUF file") == toy.stands()
    toy.log.add(model(ID), Unservable(revision=1, reason="no GGUF file"))
    assert ("unservable", "no GGUF file") == toy.stands()
    assert Unavailability(False, "Model 'toy' can't be served: no GGUF file", permanent=True) == toy.hope()


SECOND_REPLICA = ReplicaId("m-toy-2")


def test_what_a_new_revision_still_lacks_is_not_wanted_of_the_model() -> None:
    toy = Toy()
    toy.place()
    toy.ready()
    assert ModelStanding("ready", None, 1, 1, serves=1) == toy.whole()

    toy.revision(concurrency=7)
    assert ModelStanding("ready", None, 1, 1, serves=1) == toy.whole()
    toy.place(SECOND_REPLICA)
    toy.ready(SECOND_REPLICA)

    assert ModelStanding("ready", None, 2, 2, serves=2) == toy.whole()


def test_a_new_revision_without_a_place_says_so_beside_the_one_that_serves() -> None:
    toy = Toy()
    toy.place()
    toy.ready()
    toy.revision(concurrency=7)
    toy.log.add(replica(SECOND_REPLICA), Unplaceable(model=ID, revision=2, reason="no room", receipt=RECEIPT))

    assert ModelStanding("ready", "revision 2 has no place: no room", 1, 1, serves=1) == toy.whole()


def test_a_failed_revision_is_told_beside_the_one_that_serves() -> None:
    toy = Toy()
    toy.place()
    toy.ready()
    toy.revision(concurrency=7)
    toy.log.add(model(ID), Unservable(revision=2, reason="no such argument"))
    toy.log.retire(SECOND_REPLICA)
    said = "revision 2 can't be served: no such argument"
    failing = Failing(2, "no such argument")
    assert ModelStanding("ready", said, 1, 1, 1, failing) == toy.whole()
    (problem,) = problems_of(toy.log.fleet, {ID: toy.whole()})
    assert "revision 2 of model toy can't be served: no such argument; revision 1 goes on" == problem

    toy.say(Stopped(epoch=1, why="exited", detail=DIED))

    assert ModelStanding("loading", f"it starts again after: {DIED}; {said}", 0, 1, 1, failing) == toy.whole()
    assert toy.hope().temporary


def test_an_upgrade_of_its_engine_that_failed_is_told_while_the_model_serves() -> None:
    toy = Toy()
    toy.place()
    toy.ready()
    toy.log.add(model(ID), Unservable(revision=1, reason="echo 2.0 could not be installed", recipe="d2"))

    assert ("ready", "its engine was not upgraded: echo 2.0 could not be installed") == toy.stands()


def test_a_model_whose_kept_revision_was_given_up_too_is_not_served() -> None:
    toy = Toy()
    toy.place()
    toy.ready()
    toy.revision(concurrency=7)
    toy.log.add(model(ID), Unservable(revision=2, reason="no such argument"))
    toy.log.retire(SECOND_REPLICA)
    toy.say(Failed(epoch=1, reason="the file is gone", permanent=True, starts=1))
    toy.log.add(model(ID), Unservable(revision=1, reason="the file is gone"))

    assert ("unservable", "the file is gone; revision 2 can't be served: no such argument") == toy.stands()
    assert Unavailability(False, "Model 'toy' can't be served: the file is gone", permanent=True) == toy.hope()


def test_a_model_without_replicas_is_placing_where_it_wants_some_and_empty_where_not() -> None:
    toy = Toy()
    toy.log.retire(REPLICA)
    assert ModelStanding("placing", None, 0, 0) == toy.whole()
    assert Unavailability(True, "Model 'toy' has no replica yet.") == toy.hope()
    toy.log.model("toy", SPEC.model_copy(update={"min_replicas": 0}))
    assert ModelStanding("empty", None, 0, 0) == toy.whole()
    assert Unavailability(True, "Model 'toy' sleeps: a request wakes it.", sleeps=True) == toy.hope()


def test_a_model_that_was_let_go_says_why_it_sleeps_and_one_that_was_woken_is_on_its_way() -> None:
    toy = Toy()
    toy.log.model("toy", SPEC.model_copy(update={"min_replicas": 0}))
    toy.log.add(model(ID), sized(0, was=1, why="nothing ran or waited for 300 s"))
    toy.log.retire(REPLICA)

    reason = "it sleeps until it is asked: nothing ran or waited for 300 s"
    assert ModelStanding("empty", reason, 0, 0) == toy.whole()
    assert toy.hope().sleeps

    toy.log.add(model(ID), sized(1, was=0, why="a request waits for it"))

    assert ModelStanding("placing", None, 0, 0) == toy.whole()
    assert Unavailability(True, "Model 'toy' has no replica yet.") == toy.hope()


def sized(replicas: int, *, was: int, why: str) -> Sized:
    receipt = SizingReceipt(position=1, decided_at=1.0, seed=0, policy=ScalingPolicy(), seen=DemandSeen())
    return Sized(replicas=replicas, was=was, places=8, why=why, receipt=receipt)


def test_a_deleted_model_is_that_whatever_still_runs() -> None:
    toy = Toy()
    toy.place()
    toy.ready()
    toy.log.add(model(ID), Deleted())
    assert ("deleted", None) == toy.stands()


def test_a_model_that_answers_is_ready_and_says_what_was_given_up() -> None:
    toy = Toy()
    toy.place()
    toy.ready()
    toy.log.add(model(ID), Unservable(revision=1, reason="too slow"))
    assert ("ready", "too slow") == toy.stands()


def test_an_evicted_or_retired_replica_is_not_wanted() -> None:
    toy = Toy()
    toy.log.scale(ID, 2)
    toy.log.add(replica(SECOND_REPLICA), Evicted(why="room"))
    toy.log.retire(ReplicaId("m-toy-3"))
    toy.place()
    toy.ready()
    assert ModelStanding("ready", None, 1, 1, serves=1) == toy.whole()


def test_who_waits_for_what_others_hold_waits_and_is_told_why() -> None:
    toy = Toy()
    kept = KeptForNow(why="ending m-x-1 of x on a would make room, but it was used", read=UsesRead())
    no_room = Unplaceable(model=ID, revision=1, reason="no room", receipt=RECEIPT)
    toy.log.add(replica(REPLICA), no_room)
    assert not toy.hope().temporary
    toy.log.add(replica(REPLICA), no_room.model_copy(update={"kept": kept}))
    assert Unavailability(True, f"Model 'toy' has no place now: {kept.why}.") == toy.hope()
    # and once something ends for it
    toy.log.model("x", SPEC, replicas=1)
    members = (Member(node=toy.node, rank=0, devices=()),)
    toy.log.add(replica(ReplicaId("m-x-1")), Evicted(why="idle", waiting=REPLICA, model=ID, members=members, until=9.0))
    assert Unavailability(True, "Model 'toy' is not ready: others end to make room for it.") == toy.hope()


def test_where_one_of_several_has_no_place_the_model_is_placing_until_all_have_none() -> None:
    toy = Toy()
    toy.log.scale(ID, 1)
    toy.log.add(replica(SECOND_REPLICA), Unplaceable(model=ID, revision=1, reason="no room", receipt=RECEIPT))
    assert ("placing", "no room") == toy.stands()
    assert "replica m-toy-1 is added" in toy.hope().sentence
    toy.log.add(replica(REPLICA), Unplaceable(model=ID, revision=1, reason="no room", receipt=RECEIPT))
    assert ("unplaceable", "no room") == toy.stands()
    # the one that has a place loads, and the other is not spoken of
    toy.place()
    assert ("loading", None) == toy.stands()


def test_what_failed_is_told_before_what_starts_again() -> None:
    toy = Toy()
    toy.log.scale(ID, 1)
    toy.place()
    toy.place(SECOND_REPLICA)
    toy.say(Loading(epoch=1, incarnation=FIRST), Stopped(epoch=1, why="exited", detail=DIED))
    toy.say(Failed(epoch=1, reason="no GGUF file", permanent=False, starts=3), of=SECOND_REPLICA)
    assert ("loading", "no GGUF file") == toy.stands()
    # and the one that came furthest is waited for
    toy.say(Loading(epoch=1, incarnation=SECOND))
    assert "replica m-toy-1 on node a is loading" in toy.hope().sentence


def test_a_new_revision_that_is_not_ready_says_what_keeps_it_and_nothing_while_it_only_takes_time() -> None:
    toy = Toy()
    toy.place()
    toy.ready()
    toy.revision(concurrency=7)
    toy.place(SECOND_REPLICA)
    toy.say(Loading(epoch=1, incarnation=FIRST), of=SECOND_REPLICA)
    assert ("ready", None) == toy.stands()
    toy.say(Stopped(epoch=1, why="exited", detail=DIED), of=SECOND_REPLICA)
    assert ("ready", f"revision 2 is not ready: it starts again after: {DIED}") == toy.stands()


def test_without_an_approved_node_there_is_nothing_to_wait_for() -> None:
    toy = Toy()
    none = Unavailability(False, "Model 'toy' has no worker: no approved node is in the mesh.")
    toy.log.add(node(toy.node), Removed(why="sold"))
    assert none == toy.hope()
    where = Addresses(host="127.0.0.1", http_port=1)
    toy.log.add(node(NodeId("n-b")), Joined(name="b", public_key="U", token=TokenId("t"), addresses=where))
    assert none == toy.hope()
    toy.log.add(node(NodeId("n-b")), Approved(by="admin"))
    assert toy.hope().temporary


def test_a_replica_on_a_node_that_the_log_forgot_is_named_by_the_nodes_id() -> None:
    toy = Toy()
    toy.place()
    toy.say(Loading(epoch=1, incarnation=FIRST))
    toy.log.node("b", 1)
    toy.log.add(node(toy.node), Expired(waited_s=1))
    assert "replica m-toy-1 on node n-a is " in toy.hope().sentence


def test_what_is_wrong_with_the_revision_that_serves_is_told_before_what_a_new_one_lacks() -> None:
    toy = Toy()
    toy.place()
    toy.ready()
    toy.revision(concurrency=7)
    toy.log.add(replica(SECOND_REPLICA), Unplaceable(model=ID, revision=2, reason="no room", receipt=RECEIPT))
    toy.say(Stopped(epoch=1, why="exited", detail=DIED))
    assert ModelStanding("loading", f"it starts again after: {DIED}", 0, 1, serves=1) == toy.whole()


def test_a_replica_of_a_new_revision_counts_from_when_it_answers() -> None:
    toy = Toy()
    toy.place()
    toy.ready()
    toy.log.model("toy", SPEC.model_copy(update={"concurrency": 7, "min_replicas": 2, "max_replicas": 2}), replicas=2)
    toy.place(SECOND_REPLICA)
    toy.ready(SECOND_REPLICA)
    assert ModelStanding("ready", None, 2, 2, serves=1) == toy.whole()
