"""What ended for whom stands beside why a replica is where it is."""

from weft_contracts.facts.replica import Evicted
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Member, ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.subjects import replica
from weft_gateway.domain.explanations import made_room
from weft_testing.fleet_log import FleetLog

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated", min_replicas=0, max_replicas=0)
OLD, NEW = ReplicaId("m-old-1"), ReplicaId("m-new-1")


def test_who_waits_is_told_what_ends_for_it_and_who_ended_for_whom() -> None:
    log = FleetLog()
    log.model("old", SPEC, replicas=2)
    log.model("new", SPEC, replicas=1)
    waiting = log.fleet.replicas[NEW]
    assert "no node can take it" == made_room(log.fleet, waiting, "no node can take it")
    members = (Member(node=NodeId("n-a"), rank=0, devices=()),)
    told = Evicted(why="it was idle for 40 s", waiting=NEW, model=ModelId("m-new"), members=members, until=9.0)
    log.add(replica(OLD), told)
    assert "none; m-old-1 of old made room for it, and ends" == made_room(log.fleet, waiting, "none")
    log.add(replica(ReplicaId("m-old-2")), told)
    both = "none; m-old-1 of old and m-old-2 of old made room for it, and end"
    assert both == made_room(log.fleet, waiting, "none")
    assert "placed on a; it was idle for 40 s" == made_room(log.fleet, log.fleet.replicas[OLD], "placed on a")
