"""Which replica goes first where fewer should serve: the one with the lowest score."""

from weft_fleet import Fleet, ReplicaView

from weft_reconciler.domain.replica_status import ReplicaStatus
from weft_reconciler.domain.replica_survey import SurveyedReplica

_STATUS = {ReplicaStatus.SERVING: 1.0, ReplicaStatus.STARTING: 0.5}


def keep_score(fleet: Fleet, surveyed: SurveyedReplica) -> float:
    """100 × its status (1 serving, ½ starting, else 0) + 10 × what of it lies on accelerators + 1 × the score of its
    place, as it was when it was placed: its own claim was free then."""
    replica = surveyed.replica
    return 100 * _STATUS.get(surveyed.assessment.status, 0.0) + 10 * offloaded(fleet, replica) + replica.score


def offloaded(fleet: Fleet, replica: ReplicaView) -> float:
    """The share of its layers on accelerators, as its claims tell it: their part of all that it claims."""
    there = everywhere = 0
    for member in replica.members:
        node = fleet.nodes.get(member.node)
        devices = {} if node is None or node.hardware is None else {d.index: d for d in node.hardware.devices}
        for claim in member.devices:
            everywhere += claim.bytes
            device = devices.get(claim.index)
            there += claim.bytes if device is not None and device.vendor != "cpu" else 0
    return there / everywhere if everywhere else 0.0
