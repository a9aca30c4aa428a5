"""A replica on each node that matches: no node is given two, and a dry run says which get one."""

from weft_contracts.digest import revision_digest
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec, Receipt
from weft_contracts.ids import ModelId, NodeId
from weft_contracts.subjects import node, replica
from weft_placement import DryRun, Placement, Policy, decide_placement, dry_run
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
RECEIPT = Receipt(
    position=0, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0, refusals={}, candidates=()
)
EVERYWHERE = ModelSpec(
    source=SimulatedSource(),
    engine="simulated",
    engine_args={"memory_bytes": GIB},
    spread_all=True,
    selector={"gpu": "yes"},
)


def chosen(run: DryRun) -> list[str]:
    return sorted(answer.name for each in run.explanations for answer in each.answers if answer.chosen)


def three_that_match(log: FleetLog) -> None:
    for name in ("a", "b", "c"):
        log.node(name, 4 * GIB, labels={"gpu": "yes"})
    log.node("x", 4 * GIB)


def test_a_dry_run_gives_one_to_each_node_that_matches() -> None:
    log = FleetLog()
    three_that_match(log)

    run = dry_run(log.fleet, "toy", EVERYWHERE)

    assert ["a", "b", "c"] == chosen(run)
    assert (3, 3, True) == (run.wanted, run.placed, run.fits)


def test_a_dry_run_where_no_node_matches_says_why() -> None:
    log = FleetLog()
    log.node("x", 4 * GIB)

    run = dry_run(log.fleet, "toy", EVERYWHERE)

    assert (1, 0, False) == (run.wanted, run.placed, run.fits)
    assert ["lacks the label gpu=yes"] == [answer.refusal for each in run.explanations for answer in each.answers]


def served_on(log: FleetLog, id: ModelId, *nodes: str) -> None:
    """Replicas of the newest revision, each with its place."""
    log.scale(id, len(nodes))
    for waiting, name in zip(tuple(log.fleet.waiting), nodes, strict=True):
        view = log.fleet.replicas[waiting]
        digest, spec = log.fleet.spec_of(view)
        member = {"node": f"n-{name}", "rank": 0, "devices": [{"index": 0, "bytes": GIB}]}
        body = {"model": id, "revision": view.revision, "epoch": 1, "members": [member]}
        log.add(replica(waiting), Placed.model_validate(body | {"receipt": RECEIPT}))
        more = {"replica": waiting, "model_name": "toy", "digest": digest, "spec": spec}
        log.add(node(NodeId(f"n-{name}")), Assigned.model_validate(body | more))


def test_a_node_that_has_one_is_refused() -> None:
    log = FleetLog()
    three_that_match(log)
    id = log.model("toy", EVERYWHERE)
    served_on(log, id, "a", "b")
    log.scale(id, 2)
    first, second = log.fleet.waiting

    found = decide_placement(log.fleet, first, Policy(), now=1.0, seed=0)

    assert isinstance(found, Placement)
    assert ["n-c"] == [member.node for member in found.members]
    assert 2 == found.receipt.refusals["runs a replica of it already, and each node has one"]
    assert second != first


def test_a_dry_run_of_a_model_that_serves_on_some_gives_one_to_the_others_alone() -> None:
    log = FleetLog()
    three_that_match(log)
    one = EVERYWHERE.model_copy(update={"spread_all": False})
    served_on(log, log.model("toy", one, digest=revision_digest(one)), "b")

    run = dry_run(log.fleet, "toy", EVERYWHERE)

    assert ["a", "c"] == chosen(run)
    assert (3, 1) == (run.wanted, run.staying)
