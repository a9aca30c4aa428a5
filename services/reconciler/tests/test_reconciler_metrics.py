"""What the reconciler tells of models at /metrics."""

from prometheus_client import CollectorRegistry
from weft_contracts.facts.model import Deleted
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Loading, Ready
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ReplicaId
from weft_contracts.subjects import model, node, replica, run
from weft_reconciler.inbound.model_metrics import ModelMetrics
from weft_testing.fleet_log import FleetLog

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="p", seed=1, trigger="t", decided_at=1.0, refusals={}, candidates=()
)


class Told:
    def __init__(self, log: FleetLog) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(ModelMetrics(lambda: log.fleet))

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"weft_{name}", labels)


def answers(log: FleetLog, id: ReplicaId) -> None:
    """Place a replica on a node, and let it get ready."""
    on = log.node("a", 1 << 30)
    of = log.fleet.replicas[id].model
    member = Member(node=on, rank=0, devices=(DeviceClaim(index=0, bytes=1),))
    log.add(replica(id), Placed(model=of, revision=1, epoch=1, members=(member,), receipt=RECEIPT))
    log.add(
        node(on),
        Assigned(replica=id, model=of, model_name="x", revision=1, digest="x-1", epoch=1, members=(member,), spec=SPEC),
    )
    said = Incarnation("i-1")
    log.add(run(on, id), Loading(epoch=1, incarnation=said))
    log.add(run(on, id), Ready(epoch=1, incarnation=said, port=1, engine="simulated", engine_version="1"))


def test_a_model_tells_how_many_replicas_it_should_have_and_how_many_answer() -> None:
    log = FleetLog()
    told = Told(log)
    of = log.model("x", SPEC, replicas=2)
    assert (1, 2, 0) == (
        told("models"),
        told("model_replicas_wanted", model="x"),
        told("model_replicas_ready", model="x"),
    )
    first, second = log.fleet.models[of].replicas
    answers(log, first)
    assert (1, 1, 1) == (
        told("model_replicas_ready", model="x"),
        told("replicas", state="ready"),
        told("replicas", state="added"),
    )
    log.retire(first)
    assert (1, 0) == (told("model_replicas_wanted", model="x"), told("model_replicas_ready", model="x"))
    log.retire(second)
    assert 0 == told("replicas", state="added")


def test_a_deleted_model_is_told_no_more() -> None:
    log = FleetLog()
    told = Told(log)
    of = log.model("x", SPEC)
    assert 0 == told("model_replicas_wanted", model="x")
    log.add(model(of), Deleted())
    assert (0, None) == (told("models"), told("model_replicas_wanted", model="x"))
