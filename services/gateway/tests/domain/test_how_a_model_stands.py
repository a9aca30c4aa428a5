"""How a model stands, and what can be hoped for while no replica of it answers."""

from weft_contracts.facts.model import Unservable
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.run import Failed, Loading, Ready, RunFact, Stopped
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Receipt, SimulatedSource
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import model, node, replica, run
from weft_gateway.domain.model_state import standing
from weft_gateway.domain.prospect import Prospect, prospect
from weft_placement.imagined import ImaginedLog

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
        self.log = ImaginedLog()
        self.node: NodeId = self.log.node("a", 1 << 30)
        self.log.model("toy", SPEC, replicas=1)

    def place(self) -> None:
        members = (Member(node=self.node, rank=0, devices=(DeviceClaim(index=0, bytes=1),)),)
        self.log.add(replica(REPLICA), Placed(model=ID, revision=1, epoch=1, members=members, receipt=RECEIPT))
        assigned = Assigned(
            replica=REPLICA,
            model=ID,
            model_name="toy",
            revision=1,
            digest="toy-1",
            epoch=1,
            members=members,
            spec=SPEC,
        )
        self.log.add(node(self.node), assigned)

    def say(self, *facts: RunFact) -> None:
        for fact in facts:
            self.log.add(run(self.node, REPLICA), fact)

    def stands(self) -> tuple[str, str | None]:
        found = standing(self.log.fleet.models[ID], list(self.log.fleet.replicas.values()))
        return found.state, found.reason

    def hope(self) -> Prospect:
        fleet = self.log.fleet
        return prospect(fleet.models[ID], fleet.replicas.values(), fleet.nodes.values())


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
    assert Prospect(True, "Model 'toy' is not ready: replica m-toy-1 is added.") == toy.hope()
    toy.place()
    toy.say(Loading(epoch=1, incarnation=FIRST))
    assert Prospect(True, "Model 'toy' is not ready: replica m-toy-1 on node a is loading.") == toy.hope()


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
    assert Prospect(False, "Model 'toy' has no place: no room") == toy.hope()
    toy.place()
    toy.say(Failed(epoch=1, reason="no GGUF file", permanent=True, starts=1))
    assert ("loading", "no GGUF file") == toy.stands()
    toy.log.add(model(ID), Unservable(revision=1, reason="no GGUF file"))
    assert ("unservable", "no GGUF file") == toy.stands()
    assert Prospect(False, "Model 'toy' can't be served: no GGUF file") == toy.hope()
